package controller

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/controller/backlog"
	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/controller/trial"
	"github.com/headgate/headgate/internal/observe/expiry"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// updater returns a Controller that takes changes and builds, without NGINX.
func updater(t *testing.T, want Subscriptions) *Controller {
	t.Helper()
	builder, m := build.New(nil, "x"), metrics.New()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	c := &Controller{
		settings: Settings{
			Settings: edge.Settings{Tracker: tracker.New(log, m.Findings)}, Subscriptions: want, Expiry: expiry.New("", func([]tracker.Part) {}),
		}, log: log, metrics: m, queue: source.NewQueue(),
		store:   store.New(store.Settings{IngressClass: "nginx", WatchWithoutClass: true, Classless: true}, builder.Refer),
		builder: builder, trials: trial.New(nil, nil), backlog: backlog.New(), withHosts: map[string][]unit.Key{},
	}
	c.edge = edge.Without(c.settings.Settings, front{c})
	c.whole = trial.NewWhole(c.trials, nginxconf.Environment{}, nil, nil, c.edge.Globals)
	return c
}

// withSecret is an Ingress that refers to a Secret, and to the Service "s".
func withSecret(name, secret string) source.Change {
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	ing.Spec.Rules = []networkingv1.IngressRule{{Host: name + ".test"}}
	ing.Spec.DefaultBackend = &networkingv1.IngressBackend{
		Service: &networkingv1.IngressServiceBackend{Name: "s", Port: networkingv1.ServiceBackendPort{Number: 80}},
	}
	ing.Spec.TLS = []networkingv1.IngressTLS{{SecretName: secret, Hosts: []string{name + ".test"}}}
	return source.Change{Object: ing}
}

// externalName is the Service "s" with an external name.
func externalName(name string) source.Change {
	return source.Change{Object: &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "s"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeExternalName, ExternalName: name, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}}
}

// TestReferencesThatKeepComing: an update ends although each response refers to
// something else, and it asks for all of it.
func TestReferencesThatKeepComing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, asked := time.Now(), 0
		var c *Controller
		// next delivers another reference, for the first minute.
		next := func(change func(name string) source.Change) <-chan struct{} {
			delivered := make(chan struct{})
			asked++
			if time.Since(began) < time.Minute {
				c.queue.Put(change(fmt.Sprint("n", asked)))
			}
			close(delivered)
			return delivered
		}
		c = updater(t, Subscriptions{
			Secrets: func(added, _ []types.NamespacedName) <-chan struct{} {
				return next(func(name string) source.Change { return withSecret(name, name) })
			},
			Addresses: func(added, _ []string) <-chan struct{} {
				return next(func(name string) source.Change { return externalName(name + ".test") })
			},
		})
		c.update(t.Context(), []source.Change{withSecret("a", "a"), externalName("a.test")})
		if took := time.Since(began); took > secretsInUpdate+50*time.Millisecond {
			t.Errorf("an update took %v", took)
		}
		if asked < 10 {
			t.Errorf("what comes was asked for %d times", asked)
		}
		if left := len(c.store.DrainSecrets().Added) + len(c.store.DrainNames().Added); left > 0 {
			t.Errorf("%d that were taken were not asked for", left)
		}
	})
}

// TestNamesWait: names are waited for, and those that are slow hold up updates
// for less than 1% of the time.
func TestNamesWait(t *testing.T) {
	for name, slow := range map[string]time.Duration{"slow": 90 * time.Millisecond, "silent": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answer, asked := slow, 0
				c := updater(t, Subscriptions{Addresses: func(added, _ []string) <-chan struct{} {
					delivered := make(chan struct{})
					asked += len(added)
					time.AfterFunc(answer, func() { close(delivered) })
					return delivered
				}})
				update := func(text string) time.Duration {
					began := time.Now()
					c.update(t.Context(), []source.Change{externalName(text)})
					return time.Since(began)
				}
				c.update(t.Context(), []source.Change{withSecret("a", "a")})
				began, held := time.Now(), time.Duration(0)
				const renames = 5000
				for i := range renames {
					held += update(fmt.Sprintf("n%d.test", i))
					time.Sleep(10 * time.Millisecond)
				}
				if all := time.Since(began); held > all/100 {
					t.Errorf("updates were held up for %v of %v", held, all)
				}
				if held < min(slow, namesInUpdate) {
					t.Errorf("names were waited for %v in all", held)
				}
				if asked != renames {
					t.Errorf("%d of %d names were asked for", asked, renames)
				}
				time.Sleep(time.Minute)
				answer = 5 * time.Millisecond
				if took := update("quick.test"); took < answer || took > answer+50*time.Millisecond {
					t.Errorf("a name that is answered after %v was waited for %v", answer, took)
				}
				time.Sleep(slow)
			})
		})
	}
}

// TestHostsThatWait: what changes with a host that waits comes at once, but for what the
// last version of the host needs.
func TestHostsThatWait(t *testing.T) {
	c := updater(t, Subscriptions{})
	c.update(t.Context(), []source.Change{withSecret("a", "a"), withSecret("b", "b")})
	if c.turn != nil || !c.backlog.Empty() || c.edge.Count(unit.Host) != 2 {
		t.Fatalf("%d hosts, turn %v", c.edge.Count(unit.Host), c.turn)
	}
	c.backlog.Add("a.test", "shop", time.Now())
	c.backlog.Built("a.test", "shop", time.Minute, time.Now())
	gone, other := withSecret("a", "a"), withSecret("b", "b")
	gone.Deleted = true
	other.Object.(*networkingv1.Ingress).Spec.DefaultBackend.Service.Name = "other"
	c.update(t.Context(), []source.Change{gone, other})
	if c.turn == nil || c.backlog.Empty() || c.edge.Count(unit.Host) != 2 {
		t.Errorf("%d hosts, turn %v", c.edge.Count(unit.Host), c.turn)
	}
	if n := c.edge.Count(unit.Name); n != 1 {
		t.Errorf("%d names", n)
	}
	if got := int(testutil.ToFloat64(c.metrics.HostsToBuild)); got != 1 {
		t.Errorf("the metric says that %d hosts wait", got)
	}
	// An administrator's change does not wait, and has the default host built too.
	c.update(t.Context(), []source.Change{{Object: &corev1.ConfigMap{Data: map[string]string{"x": "y"}}}})
	if n := c.edge.Count(unit.Host); n != 3 || c.backlog.Empty() {
		t.Errorf("%d hosts", n)
	}
	c.backlog.Built("rested.test", "shop", 2*backlog.DearBuild, time.Now().Add(-time.Hour))
	c.build(nil)
	if n := c.edge.Count(unit.Host); n != 2 || c.turn != nil || !c.backlog.Empty() {
		t.Errorf("%d hosts, turn %v", n, c.turn)
	}
}
