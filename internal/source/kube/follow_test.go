package kube_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/source/kube"
)

func TestFirstBatchHoldsEverything(t *testing.T) {
	for _, c := range []struct {
		about string
		old   bool
	}{{"streaming lists", false}, {"an API server that can't stream lists", true}} {
		t.Run(c.about, func(t *testing.T) {
			a := newAPIServer(t)
			a.oldServer = c.old
			fill(a)
			w := start(t, a, nil)
			w.awaitNames(filled...)
			if n := w.count(); n != 1 {
				t.Errorf("everything came in %d batches", n)
			}
			if lists := a.asked("list"); (lists > 0) != c.old {
				t.Errorf("%d lists were asked for", lists)
			}
			if text := w.logged("level=WARN"); text != 0 {
				t.Errorf("the log has %d warnings", text)
			}
			if err := w.stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestEmptyClusterIsDelivered(t *testing.T) {
	w := start(t, newAPIServer(t), nil)
	w.awaitNames()
}

func TestChanges(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	w := start(t, a, nil)
	w.awaitNames(filled...)

	a.put(slice("one", "127.0.0.1", "127.0.0.2"))
	w.await("an endpoint", func() bool {
		return len(w.objects["EndpointSlice shop/one-1"].(*discoveryv1.EndpointSlice).Endpoints) == 2
	})
	a.put(ingress("new", "nginx", "one"))
	w.awaitNames(append([]string{"Ingress shop/new"}, filled...)...)
	a.remove(ingress("new", "nginx", "one"))
	w.awaitNames(filled...)

	from := w.count()
	status := ingress("web", "nginx", "one")
	status.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
	status.ManagedFields, status.Labels = nil, map[string]string{"a": "b"}
	a.put(status, configMap("foreign"))
	a.put(ingress("last", "nginx", "one"))
	w.awaitNames(append([]string{"Ingress shop/last"}, filled...)...)
	if got := fmt.Sprint(w.delivered(from)); got != "[Ingress shop/last]" {
		t.Errorf("delivered were %s", got)
	}
}

// TestStatus: what an Ingress's status says of its addresses comes only where
// it is read.
func TestStatus(t *testing.T) {
	a := newAPIServer(t)
	ing := ingress("web", "nginx", "one")
	ing.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{
		{IP: "192.0.2.1", Ports: []networkingv1.IngressPortStatus{{Port: 80}}}, {Hostname: "a.test"},
	}
	a.put(ing)
	for _, read := range []bool{false, true} {
		w := start(t, a, func(s *kube.Settings) { s.Status = read })
		w.awaitNames("Ingress shop/web")
		want := "[]"
		if read {
			want = "[{192.0.2.1  []} { a.test []}]"
		}
		if got := fmt.Sprint(w.get("Ingress shop/web").(*networkingv1.Ingress).Status.LoadBalancer.Ingress); got != want {
			t.Errorf("the status is %s, want %s", got, want)
		}
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	}
}

// TestBatches keeps a delivery waiting: what comes meanwhile makes one batch,
// with the newest version of each object.
func TestBatches(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	w := start(t, a, nil)
	w.awaitNames(filled...)
	w.hold.Lock()
	a.put(service("first"))
	for i := range 100 {
		a.put(slice("one", fmt.Sprintf("127.0.1.%d", i)))
		a.put(service("gone"))
		a.remove(service("gone"))
	}
	a.put(service("last"))
	from := w.count()
	w.hold.Unlock()
	w.await("the last change", func() bool {
		s := w.objects["EndpointSlice shop/one-1"].(*discoveryv1.EndpointSlice)
		return w.objects["Service shop/last"] != nil && s.Endpoints[0].Addresses[0] == "127.0.1.99"
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, batch := range w.batches[from:] {
		seen := map[string]bool{}
		for _, c := range batch {
			if name := nameOf(c.Object); seen[name] {
				t.Errorf("%s is in a batch twice", name)
			} else {
				seen[name] = true
			}
		}
	}
	if slices.Contains(w.names(), "Service shop/gone") {
		t.Error("a deleted Service is left")
	}
}

func TestAPIServerAwayAtStart(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	a.down()
	w := start(t, a, nil)
	w.await("a log line", func() bool { return strings.Contains(w.log.String(), "does not answer") })
	if w.count() != 0 {
		t.Error("something was delivered")
	}
	a.up()
	w.awaitNames(filled...)
	if n := w.logged("does not answer"); n != 1 {
		t.Errorf("it was delivered %d times", n)
	}
	if w.logged("Headgate serves nothing until this is resolved") != 1 || w.logged("the API server answers again") != 1 {
		t.Errorf("the log does not say what it means:\n%s", w.text())
	}
}

// TestRestored stops the API server, restores an older snapshot and writes
// again until its version is beyond the last one seen, or starts at once.
func TestRestored(t *testing.T) {
	for _, later := range []int{0, 100} {
		a := newAPIServer(t)
		fill(a)
		w := start(t, a, nil)
		w.awaitNames(filled...)
		backup := a.snapshot()
		a.put(ingress("new", "nginx", "one"), slice("one", "127.0.0.9"))
		a.remove(service("one"))
		w.await("the changes", func() bool {
			return w.objects["Ingress shop/new"] != nil && w.objects["Service shop/one"] == nil &&
				w.objects["EndpointSlice shop/one-1"].(*discoveryv1.EndpointSlice).Endpoints[0].Addresses[0] == "127.0.0.9"
		})
		from := w.count()
		a.down()
		if later > 0 {
			w.await("all watches' end", func() bool { return w.noticed() })
		}
		a.restore(backup)
		for range later {
			a.put(configMap("foreign"))
		}
		a.up()
		w.awaitNames(filled...)
		w.await("the old endpoint", func() bool {
			return w.objects["EndpointSlice shop/one-1"].(*discoveryv1.EndpointSlice).Endpoints[0].Addresses[0] == "127.0.0.1"
		})
		want := "[-Ingress shop/new EndpointSlice shop/one-1 Service shop/one]"
		if got := fmt.Sprint(w.delivered(from)); got != want {
			t.Errorf("%d versions later: delivered were %s, want %s", later, got, want)
		}
		w.stop()
	}
}

// noticed reports whether all followers noticed that the API server is away
// something. It must be called by await.
func (f *fixture) noticed() bool {
	text := f.log.String()
	for _, follower := range []string{
		"ingresses.networking.k8s.io ", "ingressclasses.networking.k8s.io ", "services ", "endpointslices.discovery.k8s.io ",
		"configmaps ", `secrets needed="to read the cert`, `secrets needed="to know when`,
	} {
		if !strings.Contains(text, `watch ended" resource=`+follower) {
			return false
		}
	}
	return true
}

func TestWatchesBreak(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	w := start(t, a, nil)
	w.awaitNames(filled...)
	from := w.count()
	a.breakWatches()
	a.put(service("two"))
	w.awaitNames(append([]string{"Service shop/two"}, filled...)...)

	// 410 Gone: earlier events are no longer sent.
	a.change(func() {
		a.broken++
		a.store(service("three"), "ADDED")
		a.store(service("two"), "DELETED")
		a.version++
		a.history, a.compacted = nil, a.version
	})
	w.awaitNames(append([]string{"Service shop/three"}, filled...)...)
	want := "[-Service shop/two Service shop/three Service shop/two]"
	if got := fmt.Sprint(w.delivered(from)); got != want {
		t.Errorf("delivered were %s, want %s", got, want)
	}
}

func TestNamespace(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	elsewhere := service("one")
	elsewhere.Namespace = "elsewhere"
	namespace := &corev1.Namespace{}
	namespace.Name = "shop"
	a.put(elsewhere, namespace)
	w := start(t, a, func(s *kube.Settings) { s.Namespace = "shop" })
	w.awaitNames(filled...)
	for _, resource := range []string{"ingresses", "services", "endpointslices", "secrets"} {
		if all := a.asked("watch " + resource); all == 0 || all != a.asked("watch "+resource+" shop") {
			t.Errorf("%s were asked for outside the namespace", resource)
		}
	}
}

func TestNamespaceMissing(t *testing.T) {
	w := newFixture(t, newAPIServer(t), func(s *kube.Settings) { s.Namespace = "nowhere" })
	err := w.source.Run(t.Context(), w.deliver)
	if err == nil || !strings.Contains(err.Error(), "the namespace nowhere to watch does not exist") {
		t.Errorf("the error is %v", err)
	}
}

func TestPermissionMissing(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	a.forbid("list services", true)
	a.forbid("watch services", true)
	w := start(t, a, nil)
	want := `verb=list resource=services namespace=all needed="to know the ports of the Services that Ingresses name" without="Headgate does not become ready"`
	w.await("a log line", func() bool { return strings.Contains(w.log.String(), want) })
	if w.count() != 0 {
		t.Error("something was delivered without Services")
	}
	a.forbid("list services", false)
	a.forbid("watch services", false)
	w.awaitNames(filled...)
	if n := w.logged(want); n != 1 {
		t.Errorf("it was delivered %d times", n)
	}
}

func TestIngressClassesForbidden(t *testing.T) {
	a := newAPIServer(t)
	fill(a)
	a.forbid("list ingressclasses", true)
	a.forbid("watch ingressclasses", true)
	w := start(t, a, nil)
	w.awaitNames(slices.DeleteFunc(slices.Clone(filled), func(n string) bool { return strings.HasPrefix(n, "IngressClass") })...)
	class := func() *string { return w.objects["Ingress shop/web"].(*networkingv1.Ingress).Spec.IngressClassName }
	w.await("an Ingress without its class", func() bool { return class() == nil })
	if w.logged("spec.ingressClassName is ignored") == 0 {
		t.Errorf("the log does not say what is missing:\n%s", w.text())
	}
	a.put(ingress("later", "nginx", "one"))
	w.await("a later Ingress without its class", func() bool {
		later, ok := w.objects["Ingress shop/later"].(*networkingv1.Ingress)
		return ok && later.Spec.IngressClassName == nil
	})
	a.forbid("list ingressclasses", false)
	a.forbid("watch ingressclasses", false)
	w.await("the classes", func() bool { return w.objects["IngressClass /nginx"] != nil && class() != nil && *class() == "nginx" })
}
