package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

const (
	etcdClientURL = "http://127.0.0.1:2379"
	etcdPeerURL   = "http://127.0.0.1:2380"
)

// etcdCommand is etcd with one member that trusts the page cache: a cluster
// does not outlive the machine.
func etcdCommand() *cobra.Command {
	var dataDir string
	c := &cobra.Command{Use: "etcd", SilenceUsage: true, RunE: func(*cobra.Command, []string) error {
		return runEtcd(dataDir)
	}}
	c.Flags().StringVar(&dataDir, "data-dir", "", "directory of the data")
	return c
}

func runEtcd(dataDir string) error {
	client, err := url.Parse(etcdClientURL)
	if err != nil {
		return err
	}
	peer, err := url.Parse(etcdPeerURL)
	if err != nil {
		return err
	}
	cfg := embed.NewConfig()
	cfg.Dir = dataDir
	cfg.LogLevel = "warn"
	cfg.UnsafeNoFsync = true
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
	case <-time.After(time.Minute):
		return errors.New("etcd was not ready within a minute")
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	select {
	case <-end:
		return nil
	case err := <-etcd.Err():
		return fmt.Errorf("running etcd: %w", err)
	}
}
