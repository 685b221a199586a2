package build_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// caller has Ingresses, and with the key all that name no host, call a host.
// "self" is the host itself, "self/x" its path /x.
func caller() feature.Feature {
	whom := feature.Setting[string]{Annotation: "call", Key: "call", Parse: func(text string) (string, error) { return text, nil }}
	calls := func(v feature.Values) []model.Call {
		text := whom.Get(v)
		if path, ok := strings.CutPrefix(text, "self/"); ok {
			return []model.Call{{SameHost: true, Port: 80, Path: "/" + path}}
		}
		switch text {
		case "":
			return nil
		case "self":
			return []model.Call{{SameHost: true, Port: 80, Path: "/check"}}
		default:
			return []model.Call{{Host: text, Port: 80, Path: "/check"}}
		}
	}
	return feature.Feature{
		Name: "caller", Settings: []feature.AnySetting{whom}, Calls: calls,
		Route: func(v feature.Values, out *feature.RouteOut) {
			for _, call := range calls(v) {
				if call.SameHost {
					feature.Add(out.Route, "caller", out.Host.Answers(call.Path))
				}
			}
		},
	}
}

func callingIngress(name, host, path, call string) *networkingv1.Ingress {
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Annotations: map[string]string{"p/call": call}},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: path, Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}},
			}}}},
		}}}},
	}
}

func TestCallsOutside(t *testing.T) {
	builder := build.New([]feature.Feature{caller()}, "p")
	for _, c := range []struct {
		host     string
		local    bool
		key      string
		want     string
		reported bool
	}{
		{"known.example", false, "/known.example/80", "[192.0.2.7:80]", false},
		{"new.example", false, "/new.example/80", "[]", false},
		{"failed.example", false, "/failed.example/80", "[]", true},
		{"192.0.2.1", false, "/192.0.2.1/80", "[192.0.2.1:80]", false},
		{"[2001:db8::1]", false, "/[2001:db8::1]/80", "[[2001:db8::1]:80]", false},
		{"127.0.0.1", false, "/127.0.0.1/80", "[]", true},
		{"127.0.0.1", true, "/127.0.0.1/80", "[127.0.0.1:80]", false},
		{"[::1]", false, "/[::1]/80", "[]", true},
		{"169.254.169.254", false, "/169.254.169.254/80", "[]", true},
		{"localhost", true, "/localhost/80", "[]", true},
		{"web.shop.svc", false, "shop/web/80", "[10.0.0.9:80]", false},
		{"web.shop.svc.cluster.local", false, "shop/web/80", "[10.0.0.9:80]", false},
	} {
		s := store.New(store.Settings{IngressClass: "nginx", Classless: true, LocalAddresses: c.local}, builder.Refer)
		failed := source.NewAddresses("failed.example")
		failed.Problem = "no such name"
		known := source.NewAddresses("known.example")
		known.Addresses = []netip.Addr{netip.MustParseAddr("192.0.2.7")}
		for _, o := range []metav1.Object{
			known, failed, callingIngress("a", "a.example", "/", c.host),
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
			slice("shop", "web", "10.0.0.9"),
		} {
			s.Apply(o, false)
		}
		backend, found, findings := builder.Backend(c.key, s)
		if got := fmt.Sprint(backend.Endpoints); !found || got != c.want || len(findings) > 0 != c.reported {
			t.Errorf("%s (local %v): found %v, endpoints %s, findings %v", c.host, c.local, found, got, findings)
		}
		if c.reported && (findings[0].Object != "ingress/shop/a" || findings[0].Field != "p/call") {
			t.Errorf("%s: %s %s is reported", c.host, findings[0].Object, findings[0].Field)
		}
	}
}

// Of several features with calls, the one is reported whose call leads to the
// backend.
func TestTheCallIsReported(t *testing.T) {
	calling := func(annotation string) feature.Feature {
		whom := feature.Setting[string]{Annotation: annotation, Parse: func(text string) (string, error) { return text, nil }}
		return feature.Feature{Name: annotation, Settings: []feature.AnySetting{whom}, Calls: func(v feature.Values) []model.Call {
			if host := whom.Get(v); host != "self" {
				return []model.Call{{Host: host, Port: 80}}
			}
			return []model.Call{{SameHost: true, Port: 80}}
		}}
	}
	builder := build.New([]feature.Feature{calling("one"), calling("two"), calling("three")}, "p")
	s := store.New(store.Settings{IngressClass: "nginx", Classless: true}, builder.Refer)
	ingress := callingIngress("a", "localhost", "/", "")
	ingress.Annotations = map[string]string{"p/one": "127.0.0.1", "p/two": "127.0.0.2", "p/three": "self"}
	s.Apply(ingress, false)
	for key, want := range map[string]string{"/127.0.0.1/80": "p/one", "/127.0.0.2/80": "p/two", "/localhost/80": "p/three"} {
		_, found, findings := builder.Backend(key, s)
		if !found || len(findings) != 1 || findings[0].Field != want {
			t.Errorf("%s: found %v, findings %v, want one of %s", key, found, findings, want)
		}
	}
}

// Whether the host's own name is resolved depends on the host's other routes,
// and each change of these touches its backend.
func TestCallsOfTheHostItself(t *testing.T) {
	builder := build.New([]feature.Feature{caller()}, "p")
	s := store.New(store.Settings{IngressClass: "nginx", Classless: true}, builder.Refer)
	addresses := source.NewAddresses("a.example")
	addresses.Addresses = []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	s.Apply(addresses, false)
	const key = "/a.example/80"
	step := func(about string, object metav1.Object, deleted, answers bool) {
		t.Helper()
		touched := s.Apply(object, deleted)
		if !slices.Contains(touched, unit.Backend.Key(key)) {
			t.Errorf("%s touches %v", about, touched)
		}
		backend, found, _ := builder.Backend(key, s)
		host, _, _ := builder.Host("a.example", s)
		if !found || len(backend.Endpoints) == 0 != answers {
			t.Errorf("%s: found %v, endpoints %v", about, found, backend.Endpoints)
		}
		for _, route := range host.Routes {
			for _, p := range route.Policies {
				if p.Value != answers {
					t.Errorf("%s: the host answers: %v", about, p.Value)
				}
			}
		}
	}
	step("a caller", callingIngress("a", "a.example", "/", "self"), false, false)
	step("another one", callingIngress("b", "a.example", "/check", "self"), false, false)
	step("an open route elsewhere", callingIngress("c", "a.example", "/checks", ""), false, false)
	step("an open route", callingIngress("c", "a.example", "/check", ""), false, true)
	step("which goes", callingIngress("c", "a.example", "/", ""), true, false)
	step("an exempt one", callingIngress("c", "a.example", "/.well-known/acme-challenge", "self"), false, false)
	if names := s.DrainNames(); !slices.Equal(names.Added, []string{"a.example"}) {
		t.Errorf("looked up are %v", names.Added)
	}
}

// What the options call needs no Ingress, and callers have no say over a
// backend.
func TestCallsOfTheOptions(t *testing.T) {
	builder := build.New([]feature.Feature{caller()}, "p")
	options := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "options"}, Data: map[string]string{"call": "auth.example"}}
	name := store.Settings{IngressClass: "nginx", Classless: true}
	name.ConfigMap.Namespace, name.ConfigMap.Name = "shop", "options"
	s := store.New(name, builder.Refer)
	const key = "/auth.example/80"
	has := func(keys []unit.Key) bool {
		return slices.Contains(keys, unit.Backend.Key(key))
	}
	if !has(s.Apply(options, false)) || !has(s.All()) {
		t.Error("the options touch no backend")
	}
	if names := s.DrainNames(); !slices.Equal(names.Added, []string{"auth.example"}) {
		t.Errorf("looked up are %v", names.Added)
	}
	known := source.NewAddresses("auth.example")
	known.Addresses = []netip.Addr{netip.MustParseAddr("192.0.2.1")}
	if !has(s.Apply(known, false)) {
		t.Error("its address touches no backend")
	}
	if backend, found, _ := builder.Backend(key, s); !found || len(backend.Endpoints) != 1 {
		t.Errorf("found %v, endpoints %v", found, backend.Endpoints)
	}
	if !has(s.Apply(options, true)) || has(s.All()) {
		t.Error("the backend stays")
	}
	if _, found, _ := builder.Backend(key, s); found {
		t.Error("the backend is found")
	}
	if names := s.DrainNames(); !slices.Equal(names.Removed, []string{"auth.example"}) {
		t.Errorf("no longer looked up are %v", names.Removed)
	}

	s.Apply(callingIngress("a", "a.example", "/", "web.other.svc"), false)
	if users, callers := s.Users("other/web/80"), s.Callers("other/web/80"); len(users) != 0 || len(callers) != 1 {
		t.Errorf("%d users, %d callers", len(users), len(callers))
	}
}

func slice(namespace, service, address string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(80))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}
}
