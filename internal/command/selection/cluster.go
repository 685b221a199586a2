package selection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/kube"
	"github.com/headgate/headgate/internal/store"
)

// Kube are the settings for reading a cluster. pod is that of this process, if its zone is
// needed. status says whether the status of Ingresses is written.
func (s Flags) Kube(objects store.Settings, pod types.NamespacedName, status bool) kube.Settings {
	return kube.Settings{
		Namespace: s.WatchNamespace, ConfigMap: objects.ConfigMap,
		Services: []types.NamespacedName{objects.TCPServices, objects.UDPServices}, AnnotationPrefix: s.AnnotationsPrefix,
		Namespaces: s.watchNamespaceSelector != "", Pod: pod, Status: status,
	}
}

// ReadCluster reads a cluster once: all objects that are delivered first, and the
// Secrets and ConfigMaps with references. agent is the command for the API server.
func (s Flags) ReadCluster(ctx context.Context, agent string, objects store.Settings) ([]source.Change, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if err := ShareLog(log, 0, nil); err != nil {
		return nil, err
	}
	clients, err := s.Connect(agent)
	if err != nil {
		return nil, err
	}
	settings := s.Kube(store.Settings{ConfigMap: objects.ConfigMap, TCPServices: objects.TCPServices, UDPServices: objects.UDPServices}, types.NamespacedName{}, false)
	settings.Clients, settings.Log = clients, log
	cluster := kube.New(settings)
	return readOnce(ctx, reading{cluster.Run, cluster.SubscribeSecrets, cluster.SubscribeConfigMaps},
		store.New(objects, build.New(all.Features(), s.AnnotationsPrefix).Refer))
}

// A reading is a source to read once. The channels are closed when what was added is delivered.
type reading struct {
	run                 func(ctx context.Context, deliver func(context.Context, []source.Change)) error
	secrets, configMaps func(added, removed []types.NamespacedName) (delivered <-chan struct{})
}

// readOnce runs a source until it has delivered all objects, and the Secrets and
// ConfigMaps that they refer to.
func readOnce(ctx context.Context, from reading, objects *store.Store) ([]source.Change, error) {
	running, end := context.WithCancelCause(ctx)
	queue := source.NewQueue()
	var ended sync.WaitGroup
	ended.Go(func() {
		end(from.run(running, func(_ context.Context, batch []source.Change) { queue.Put(batch...) }))
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
	secrets := from.secrets(objects.DrainSecrets().Added, nil)
	configMaps := from.configMaps(objects.DrainConfigMaps().Added, nil)
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
