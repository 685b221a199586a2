package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/headgate/headgate/internal/cluster/limitstore"
	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
)

// limitStoreOptions are the flags of the store in which replicas count together.
type limitStoreOptions struct{ store limitstore.Address }

func (o *limitStoreOptions) addLimitStoreFlags(f *pflag.FlagSet) {
	f.StringVar(&o.store.URL, "limit-store", "", "URL of the Redis or Valkey in which all replicas count for global-rate-limit: redis://USER@HOST:PORT/DATABASE, or rediss:// with TLS. Without it, the annotation has no effect")
	f.StringVar(&o.store.PasswordFile, "limit-store-password-file", "", "file with the password for --limit-store, read for each connection")
	f.StringVar(&o.store.AuthorityFile, "limit-store-certificate-authority", "", "file with the certificate authorities for --limit-store (default: those of the system)")
}

// checkLimitStore rejects an address that can't be right, and files that can't be read.
func (o *limitStoreOptions) checkLimitStore() error {
	if o.store.URL == "" {
		if o.store.PasswordFile != "" || o.store.AuthorityFile != "" {
			return errors.New("--limit-store-password-file and --limit-store-certificate-authority require --limit-store")
		}
		return nil
	}
	if err := o.store.Check(); err != nil {
		return fmt.Errorf("--limit-store: %w", err)
	}
	return nil
}

// limitStoreCapability is what features can do with the store.
func (o *limitStoreOptions) limitStoreCapability() []string {
	if o.store.URL == "" {
		return nil
	}
	return []string{string(feature.LimitStore)}
}

// startLimitStore has NGINX count together with other replicas until stop is called.
func (o *limitStoreOptions) startLimitStore(socket string, registry prometheus.Registerer, log *slog.Logger) (stop func(), err error) {
	if o.store.URL == "" {
		return func() {}, nil
	}
	name, client := feature.CountingTogether(all.Features()), dataplane.New(socket)
	store, err := limitstore.New(limitstore.Settings{
		Address: o.store, Registry: registry, Log: log,
		Ask: func(ctx context.Context, question, answer any) error {
			return client.Feature(ctx, name, question, answer)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("--limit-store: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		store.Run(ctx)
		client.CloseIdle()
	}()
	return func() {
		cancel()
		<-ended
	}, nil
}
