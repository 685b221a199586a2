package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"k8s.io/klog/v2"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/kube"
	"github.com/headgate/headgate/internal/store"
)

// readCluster reads a cluster once: all objects that are delivered first, and the
// Secrets and ConfigMaps with references.
func (o explainOptions) readCluster(ctx context.Context, settings store.Settings, log *slog.Logger) ([]source.Change, error) {
	klog.SetSlogLogger(log)
	clients, err := kube.Connect(kube.Connection{
		Kubeconfig: o.kubeconfig, Host: o.apiserverHost, CertificateAuthority: o.certificateAuthority,
		QPS: o.kubeAPIQPS, Burst: o.kubeAPIBurst, UserAgent: "headgate-explain/" + version,
	})
	if err != nil {
		return nil, err
	}
	cluster := kube.New(kube.Settings{
		Clients: clients, Namespace: o.watchNamespace, ConfigMap: settings.ConfigMap, AnnotationPrefix: o.annotationsPrefix,
		Namespaces: settings.Namespaces != nil, Log: log,
	})
	return readOnce(ctx, cluster.Run, controller.Subscriptions{Secrets: cluster.SubscribeSecrets, ConfigMaps: cluster.SubscribeConfigMaps},
		store.New(settings, build.New(all.Features(), o.annotationsPrefix).Refer))
}

// readOnce runs a source until it has delivered all objects, and the Secrets and
// ConfigMaps that they refer to.
func readOnce(ctx context.Context, run controller.Source, want controller.Subscriptions, objects *store.Store) ([]source.Change, error) {
	running, end := context.WithCancelCause(ctx)
	var mu sync.Mutex
	var changes []source.Change
	first := make(chan struct{})
	begun := sync.OnceFunc(func() { close(first) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := run(running, func(_ context.Context, batch []source.Change) {
			mu.Lock()
			changes = append(changes, batch...)
			mu.Unlock()
			begun()
		})
		end(err)
	}()
	defer func() {
		end(nil)
		<-ended
	}()
	if err := await(running, first); err != nil {
		return nil, err
	}
	mu.Lock()
	for _, change := range changes {
		objects.Apply(change.Object, change.Deleted)
	}
	mu.Unlock()
	secrets := want.Secrets(objects.DrainSecrets().Added, nil)
	configMaps := want.ConfigMaps(objects.DrainConfigMaps().Added, nil)
	for _, delivered := range []<-chan struct{}{secrets, configMaps} {
		if err := await(running, delivered); err != nil {
			return nil, err
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return changes, nil
}

func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
			return fmt.Errorf("read the cluster: %w", cause)
		}
		return errors.New("read the cluster: the API server did not deliver all objects in time (--timeout)")
	}
}
