package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/kube"
	"github.com/headgate/headgate/internal/store"
)

// readCluster reads a cluster once: all objects that are delivered first, and the
// Secrets and ConfigMaps with references. agent is the name of the command for the API server.
func (o options) readCluster(ctx context.Context, agent string, settings store.Settings) ([]source.Change, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	connected, err := o.connect(agent, o.kubeSettings(store.Settings{ConfigMap: settings.ConfigMap, TCPServices: settings.TCPServices, UDPServices: settings.UDPServices}, types.NamespacedName{}), log)
	if err != nil {
		return nil, err
	}
	cluster := kube.New(connected)
	return readOnce(ctx, cluster.Run, controller.Subscriptions{Secrets: cluster.SubscribeSecrets, ConfigMaps: cluster.SubscribeConfigMaps},
		store.New(settings, build.New(all.Features(), o.annotationsPrefix).Refer))
}

// readOnce runs a source until it has delivered all objects, and the Secrets and
// ConfigMaps that they refer to.
func readOnce(ctx context.Context, run controller.Source, want controller.Subscriptions, objects *store.Store) ([]source.Change, error) {
	running, end := context.WithCancelCause(ctx)
	queue := source.NewQueue()
	var ended sync.WaitGroup
	ended.Go(func() {
		end(run(running, func(_ context.Context, batch []source.Change) { queue.Put(batch...) }))
	})
	defer ended.Wait()
	defer end(nil)
	if err := await(running, queue.Filled()); err != nil {
		return nil, err
	}
	changes, _ := queue.Collect(running)
	for _, change := range changes {
		objects.Apply(change.Object, change.Deleted)
	}
	secrets := want.Secrets(objects.DrainSecrets().Added, nil)
	configMaps := want.ConfigMaps(objects.DrainConfigMaps().Added, nil)
	for _, delivered := range []<-chan struct{}{secrets, configMaps} {
		if err := await(running, delivered); err != nil {
			return nil, err
		}
	}
	more, _ := queue.Collect(running)
	return append(changes, more...), nil
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
