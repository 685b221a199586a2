package store_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

func external(name, target string) *corev1.Service {
	s := service(name, 80)
	s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, target
	return s
}

func addresses(name, problem string, list ...string) *source.Addresses {
	a := source.NewAddresses(name)
	a.Problem = problem
	for _, text := range list {
		a.Addresses = append(a.Addresses, netip.MustParseAddr(text))
	}
	return a
}

func health(backend string, unhealthy ...string) *source.Health {
	h := &source.Health{ObjectMeta: metav1.ObjectMeta{Name: backend}}
	for _, text := range unhealthy {
		h.Unhealthy = append(h.Unhealthy, source.UnhealthyEndpoint{Address: netip.MustParseAddrPort(text), Why: "GET /: status 500"})
	}
	return h
}

func node(zone string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "self", Labels: map[string]string{corev1.LabelTopologyZone: zone}}}
}

func edited[O any](o O, edit func(O)) O {
	edit(o)
	return o
}

// TestTouchedBackends: the Service "one" is in use, "two" stands for a name.
func TestTouchedBackends(t *testing.T) {
	one := func(edit func(*corev1.Service)) *corev1.Service { return edited(service("one", 80), edit) }
	endpoint := func(edit func(*discoveryv1.Endpoint)) *discoveryv1.EndpointSlice {
		s := slice("one-1", "one", "10.0.0.1")
		edit(&s.Endpoints[0])
		return s
	}
	const backend, both = "backend shop/one/80", "backend shop/one/80, backend shop/two/80"
	refused := addresses("x.net", "", "192.0.2.1")
	refused.Refused = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	for _, c := range []struct {
		about   string
		object  metav1.Object
		deleted bool
		want    string
	}{
		{"a cluster address", one(func(s *corev1.Service) { s.Spec.ClusterIP = "10.96.0.1" }), false, backend},
		{"no cluster address", one(func(s *corev1.Service) { s.Spec.ClusterIP = "None" }), false, backend},
		{"a Service's type", external("one", "one.net"), false, backend},
		{"a Service's topology mode", one(func(s *corev1.Service) {
			s.Annotations = map[string]string{corev1.AnnotationTopologyMode: "auto"}
		}), false, backend},
		{"a Service's distribution", one(func(s *corev1.Service) { s.Spec.TrafficDistribution = new("PreferClose") }), false, backend},
		{"a Service's name outside", external("two", "y.net"), false, "backend shop/two/80"},
		{"an endpoint that drains", endpoint(func(e *discoveryv1.Endpoint) {
			e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
		}), false, backend},
		{"an endpoint's hint", endpoint(func(e *discoveryv1.Endpoint) {
			e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: "here"}}}
		}), false, backend},
		{"an address", addresses("x.net", "", "192.0.2.2"), false, "backend shop/two/80"},
		{"an endpoint that is unhealthy", health("shop/one/80", "10.0.0.1:80"), false, backend},
		{"health as it was", health("shop/two/80", "192.0.2.1:80"), false, ""},
		{"health of no one's endpoints", health("shop/other/80", "10.0.0.1:80"), false, ""},
		{"health that is good again", health("shop/two/80"), true, "backend shop/two/80"},
		{"the same addresses", addresses("x.net", "", "192.0.2.1"), false, ""},
		{"a problem", addresses("x.net", "away", "192.0.2.1"), false, "backend shop/two/80"},
		{"a refused address", refused, false, "backend shop/two/80"},
		{"no addresses", addresses("x.net", ""), true, "backend shop/two/80"},
		{"addresses of a name that no Service has", addresses("y.net", "", "192.0.2.2"), false, ""},
		{"a zone", node("here"), false, both},
		{"no zone", node(""), false, ""},
		{"a Node that goes and had no zone", node(""), true, ""},
	} {
		s := base()
		s.Apply(external("two", "x.net"), false)
		s.Apply(addresses("x.net", "", "192.0.2.1"), false)
		s.Apply(health("shop/two/80", "192.0.2.1:80"), false)
		if got := text(s.Apply(c.object, c.deleted)); got != c.want {
			t.Errorf("%s touches %q, want %q", c.about, got, c.want)
		}
	}
	s := base()
	s.Apply(node("here"), false)
	if got := text(s.Apply(node("here"), true)); got != both {
		t.Errorf("a Node that goes touches %q", got)
	}
}

// TestTouchedByProtocols: hosts depend on the application protocols of the ports that they
// use, and on nothing else of a Service.
func TestTouchedByProtocols(t *testing.T) {
	with := func(name string, ports ...corev1.ServicePort) *corev1.Service {
		return edited(service(name, 80), func(s *corev1.Service) { s.Spec.Ports = ports })
	}
	port := func(number int32, protocol *string) corev1.ServicePort {
		return corev1.ServicePort{Name: fmt.Sprint("p", number), Port: number, AppProtocol: protocol}
	}
	h2c, https := new("kubernetes.io/h2c"), new("https")
	const hosts = "backend shop/one/80, host a.example, host b.example"
	for _, c := range []struct {
		about   string
		was     *corev1.Service
		now     *corev1.Service
		deleted bool
		want    string
	}{
		{"a protocol", with("one", port(80, nil)), with("one", port(80, h2c)), false, hosts},
		{"no protocol", with("one", port(80, h2c)), with("one", port(80, nil)), false, hosts},
		{"another protocol", with("one", port(80, h2c)), with("one", port(80, https)), false, hosts},
		{"the same protocol", with("one", port(80, h2c)), with("one", port(80, new("kubernetes.io/h2c"))), false, ""},
		{"an empty one", with("one", port(80, nil)), with("one", port(80, new(""))), false, "backend shop/one/80"},
		{"another port's", with("one", port(80, h2c), port(81, nil)), with("one", port(80, h2c), port(81, https)), false, "backend shop/one/80"},
		{"something else", with("one", port(80, h2c)), edited(with("one", port(80, h2c)), func(s *corev1.Service) { s.Spec.ClusterIP = "10.96.0.1" }), false, "backend shop/one/80"},
		{"a Service that comes", nil, with("two", port(80, h2c)), false, "backend shop/two/80, host a.example, host b.example"},
		{"a Service without one that comes", nil, with("two", port(80, nil)), false, "backend shop/two/80"},
		{"a Service that goes", with("one", port(80, h2c)), service("one", 80), true, hosts},
		{"an unused Service", with("unused", port(80, nil)), with("unused", port(80, h2c)), false, ""},
		{"an endpoint", with("one", port(80, h2c)), nil, false, "backend shop/one/80"},
	} {
		s := base()
		if c.was != nil {
			s.Apply(c.was, false)
		}
		keys := s.Apply(slice("one-1", "one", "10.0.0.2"), false)
		if c.now != nil {
			keys = s.Apply(c.now, c.deleted)
		}
		if got := text(keys); got != c.want {
			t.Errorf("%s touches %q, want %q", c.about, got, c.want)
		}
	}
}

// TestTouchedByBackendSettings: where an Ingress says something of a backend,
// each change of who uses it may change who decides.
func TestTouchedByBackendSettings(t *testing.T) {
	const mark = "says"
	with := func(ingresses ...*networkingv1.Ingress) *store.Store {
		s := store.New(settings(), func(ing *networkingv1.Ingress, options *corev1.ConfigMap) spec.References {
			refs := refer(ing, options)
			if ing != nil {
				_, refs.SaysOfBackends = ing.Annotations[mark]
			}
			return refs
		})
		s.Apply(class("nginx", controllerClass), false)
		for _, ing := range ingresses {
			s.Apply(ing, false)
		}
		return s
	}
	silent := func(name string) *networkingv1.Ingress { return ingress(name, "nginx", name+".example / one") }
	says := func(name, what string) *networkingv1.Ingress { return annotated(silent(name), mark, what) }
	for _, c := range []struct {
		about   string
		there   []*networkingv1.Ingress
		object  *networkingv1.Ingress
		deleted bool
		want    bool
	}{
		{"a second silent one", []*networkingv1.Ingress{silent("a")}, silent("b"), false, false},
		{"a silent one's annotation", []*networkingv1.Ingress{silent("a"), silent("b")}, annotated(silent("b"), "x", "y"), false, false},
		{"a silent one goes, another stays", []*networkingv1.Ingress{silent("a"), silent("b")}, silent("b"), true, false},
		{"one that says something", []*networkingv1.Ingress{silent("a")}, says("b", "x"), false, true},
		{"one that says something else", []*networkingv1.Ingress{silent("a"), says("b", "x")}, says("b", "y"), false, true},
		{"one that says nothing any more", []*networkingv1.Ingress{silent("a"), says("b", "x")}, silent("b"), false, true},
		{"one that said something goes", []*networkingv1.Ingress{silent("a"), says("b", "x")}, says("b", "x"), true, true},
		{"a silent one beside it", []*networkingv1.Ingress{says("a", "x")}, silent("b"), false, true},
		{"a silent one beside it goes", []*networkingv1.Ingress{says("a", "x"), silent("b")}, silent("b"), true, true},
	} {
		keys := with(c.there...).Apply(c.object, c.deleted)
		if got := slices.Contains(keys, unit.Backend.Key("shop/one/80")); got != c.want {
			t.Errorf("%s touches %q, want the backend among them: %v", c.about, text(keys), c.want)
		}
	}
}

func TestTakeNames(t *testing.T) {
	s := store.New(settings(), refer)
	step := func(about, want string) {
		t.Helper()
		references := s.DrainNames()
		slices.Sort(references.Added)
		slices.Sort(references.Removed)
		if got := fmt.Sprint(references.Added, references.Removed); got != want {
			t.Errorf("%s: got %s, want %s", about, got, want)
		}
	}
	s.Apply(class("nginx", controllerClass), false)
	s.Apply(external("one", "X.net"), false)
	s.Apply(external("two", "x.net"), false)
	s.Apply(external("unused", "y.net"), false)
	step("unused Services", "[] []")
	s.Apply(ingress("a", "nginx", "a.example / one"), false)
	s.Apply(ingress("b", "nginx", "b.example / one"), false)
	s.Apply(ingress("c", "other", "c.example / unused"), false)
	step("two Ingresses and one of another class", "[x.net] []")
	s.Apply(ingress("b", "nginx", "b.example / two"), false)
	s.Apply(ingress("a", ""), true)
	step("another Service of the same name", "[] []")
	s.Apply(external("two", "z.net."), false)
	step("another name", "[z.net.] [x.net]")
	s.Apply(external("two", "localhost"), false)
	step("a name that is not looked up", "[] [z.net.]")
	s.Apply(external("two", "x.net"), false)
	s.Apply(service("two", 80), false)
	step("a Service that stands for a name and then not", "[] []")
	s.Apply(external("two", "x.net"), false)
	step("and does again", "[x.net] []")
	s.Apply(external("two", ""), true)
	step("the Service is deleted", "[] [x.net]")
	s.Apply(external("two", "x.net"), false)
	s.Apply(class("other", controllerClass), false)
	step("it comes back, and a class becomes ours", "[x.net y.net] []")
	s.Apply(ingress("b", ""), true)
	s.Apply(ingress("c", ""), true)
	step("all Ingresses are deleted", "[] [x.net y.net]")

	none := settings()
	none.NoExternalNames = true
	s = store.New(none, refer)
	s.Apply(class("nginx", controllerClass), false)
	s.Apply(external("one", "x.net"), false)
	s.Apply(ingress("a", "nginx", "a.example / one"), false)
	step("no name is looked up", "[] []")

	fallback := settings()
	fallback.DefaultBackend.Namespace, fallback.DefaultBackend.Name = "shop", "one"
	s = store.New(fallback, refer)
	s.Apply(external("one", "x.net"), false)
	step("the default backend", "[x.net] []")
}
