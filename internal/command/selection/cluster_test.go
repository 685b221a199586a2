package selection

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
)

// A fakeCluster delivers an Ingress, and the Secret and the ConfigMap that it
// names, as soon as they are subscribed to.
type fakeCluster struct {
	// wanted are functions that deliver.
	wanted chan func(deliver func(source.Change))
	// silent delivers nothing. Objects of the kind withheld are not delivered.
	silent   bool
	withheld string
	err      error
	ended    bool
}

func (f *fakeCluster) run(ctx context.Context, deliver func(context.Context, []source.Change)) error {
	defer func() { f.ended = true }()
	if f.err != nil {
		return f.err
	}
	if f.silent {
		<-ctx.Done()
		return nil
	}
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	ing.Annotations = map[string]string{"x/headers": "headers"}
	ing.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "pair"}}
	deliver(ctx, []source.Change{{Object: ing}})
	for {
		select {
		case wanted := <-f.wanted:
			wanted(func(change source.Change) { deliver(ctx, []source.Change{change}) })
		case <-ctx.Done():
			return nil
		}
	}
}

// want delivers an object for each name.
func (f *fakeCluster) want(kind string, object func(metav1.ObjectMeta) metav1.Object) func(added, removed []types.NamespacedName) <-chan struct{} {
	return func(added, _ []types.NamespacedName) <-chan struct{} {
		delivered := make(chan struct{})
		if kind == f.withheld {
			return delivered
		}
		f.wanted <- func(deliver func(source.Change)) {
			for _, name := range added {
				deliver(source.Change{Object: object(metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name})})
			}
			close(delivered)
		}
		return delivered
	}
}

// TestReadOnce: the Secrets and ConfigMaps with references are delivered too, and
// there is a time limit for a cluster that delivers nothing, or not everything.
func TestReadOnce(t *testing.T) {
	t.Parallel()
	headers := feature.Feature{Name: "headers", Settings: []feature.AnySetting{
		feature.Setting[feature.ObjectName]{Annotation: "headers", Parse: feature.Object, Refers: feature.ConfigMap},
	}}
	for _, c := range []struct {
		name    string
		cluster fakeCluster
		changes int
		err     string
	}{
		{"all", fakeCluster{}, 3, ""},
		{"silent", fakeCluster{silent: true}, 0, "in time (--timeout)"},
		{"without the Secret", fakeCluster{withheld: "Secret"}, 0, "in time (--timeout)"},
		{"without the ConfigMap", fakeCluster{withheld: "ConfigMap"}, 0, "in time (--timeout)"},
		{"broken", fakeCluster{err: errors.New("no such namespace")}, 0, "read the cluster: no such namespace"},
	} {
		timeout := time.Minute
		if c.cluster.silent || c.cluster.withheld != "" {
			timeout = 20 * time.Millisecond // always expires
		}
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		c.cluster.wanted = make(chan func(func(source.Change)), 2)
		objects := store.New(store.Settings{WatchWithoutClass: true}, build.New([]feature.Feature{headers}, "x").Refer)
		changes, err := readOnce(ctx, reading{
			run:        c.cluster.run,
			secrets:    c.cluster.want("Secret", func(m metav1.ObjectMeta) metav1.Object { return &corev1.Secret{ObjectMeta: m} }),
			configMaps: c.cluster.want("ConfigMap", func(m metav1.ObjectMeta) metav1.Object { return &corev1.ConfigMap{ObjectMeta: m} }),
		}, objects)
		cancel()
		if len(changes) != c.changes || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %d changes, %v", c.name, len(changes), err)
		}
		if !c.cluster.ended {
			t.Errorf("%s: the source still runs", c.name)
		}
	}
}
