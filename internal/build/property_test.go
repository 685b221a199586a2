package build_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// TestChangesLeadToTheSameUnits applies random changes one by one and builds
// only what each of them touches. In the end that must be what a fresh store
// gives for the objects that are left, in any order.
func TestChangesLeadToTheSameUnits(t *testing.T) {
	certificates := []*corev1.Secret{
		testCertificate{Names: []string{"*.example.com"}}.secret(t),
		testCertificate{Names: []string{"a.example.com", "b.example.com"}}.secret(t),
		{Data: map[string][]byte{"tls.crt": []byte("rubbish")}},
	}
	for run := range uint64(30) {
		random := rand.New(rand.NewPCG(run, 1))
		changing, builder := newStore(nil), newBuilder()
		units, left := map[unit.Key]string{}, map[string]metav1.Object{}
		wanted := map[string]bool{}
		rebuild(units, builder, changing, changing.All())
		for range 300 {
			object := randomObject(random, certificates)
			name := fmt.Sprintf("%T %s/%s", object, object.GetNamespace(), object.GetName())
			deleted := random.IntN(3) == 0
			if left[name] = object; deleted {
				delete(left, name)
			}
			rebuild(units, builder, changing, changing.Apply(object, deleted))
			if random.IntN(2) == 0 {
				want(wanted, changing)
			}
		}
		objects := slices.Collect(maps.Values(left))
		random.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		fresh, freshUnits, freshWanted := newStore(objects), map[unit.Key]string{}, map[string]bool{}
		rebuild(freshUnits, newBuilder(), fresh, fresh.All())
		if !maps.Equal(units, freshUnits) {
			t.Fatalf("seed %d: after changes:\n%s\nfresh:\n%s", run, unitsText(units), unitsText(freshUnits))
		}
		want(wanted, changing)
		want(freshWanted, fresh)
		if !maps.Equal(wanted, freshWanted) {
			t.Fatalf("seed %d: after changes %v are wanted, fresh %v", run, wanted, freshWanted)
		}
	}
}

// want keeps the DNS names that are wanted.
func want(names map[string]bool, s *store.Store) {
	references := s.DrainNames()
	for _, name := range references.Added {
		names[name] = true
	}
	for _, name := range references.Removed {
		delete(names, name)
	}
}

func rebuild(units map[unit.Key]string, b *build.Builder, s *store.Store, keys []unit.Key) {
	for _, key := range keys {
		text, findings := renderUnit(b, key, s)
		for _, f := range findings {
			text += f.String() + "\n"
		}
		if units[key] = text; text == "gone\n" {
			delete(units, key)
		}
	}
}

func unitsText(units map[unit.Key]string) string {
	var list []string
	for key, text := range units {
		list = append(list, fmt.Sprintf("%s %s\n%s", key.Kind, key.Name, text))
	}
	slices.Sort(list)
	return strings.Join(list, "")
}

func randomObject(r *rand.Rand, certificates []*corev1.Secret) metav1.Object {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	meta := metav1.ObjectMeta{Namespace: "shop", Name: pick("a", "b", "c", "d")}
	switch r.IntN(11) {
	case 0:
		return &networkingv1.IngressClass{
			ObjectMeta: metav1.ObjectMeta{Name: pick("nginx", "ours")},
			Spec:       networkingv1.IngressClassSpec{Controller: pick("k8s.io/ingress-nginx", "example.com/other")},
		}
	case 1:
		return randomService(r, meta, pick)
	case 2:
		return randomSlice(r, meta, pick)
	case 3:
		secret := *certificates[r.IntN(len(certificates))]
		secret.ObjectMeta = meta
		return &secret
	case 4:
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "headgate", Name: pick("options", "other")},
			Data:       map[string]string{pick("color", "what", "own", "host-ownership", "host-ownership"): pick("red", "pink", "true", "namespace")},
		}
	case 5:
		addresses := source.NewAddresses(pick("x.net", "y.net"))
		if addresses.Problem = pick("", "", "it is away"); r.IntN(3) > 0 {
			addresses.Addresses = []netip.Addr{netip.MustParseAddr(pick("192.0.2.1", "192.0.2.2"))}
		}
		return addresses
	case 6:
		meta := metav1.ObjectMeta{Name: "self", Labels: map[string]string{corev1.LabelTopologyZone: pick("here", "there", "")}}
		return &corev1.Node{ObjectMeta: meta}
	case 7:
		health := &source.Health{ObjectMeta: metav1.ObjectMeta{Name: model.BackendKey("shop", pick("a", "b"), pick("80", "http"))}}
		for range r.IntN(3) {
			at := netip.MustParseAddrPort(fmt.Sprintf("10.0.0.%d:8080", r.IntN(4)))
			health.Unhealthy = append(health.Unhealthy, source.UnhealthyEndpoint{Address: at, Why: pick("GET /: status 500", "GET /: status 503")})
		}
		return health
	}
	return randomIngress(r, meta, pick)
}

func randomService(r *rand.Rand, meta metav1.ObjectMeta, pick func(...string) string) *corev1.Service {
	meta.Annotations = map[string]string{corev1.AnnotationTopologyMode: pick("", "Auto")}
	return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceType(pick("ClusterIP", "ClusterIP", "ExternalName")), ClusterIP: pick("", "None", "10.96.0.1", "10.96.0.2"),
		ExternalName: pick("x.net", "Y.net", "localhost", "192.0.2.1"), TrafficDistribution: new(pick("", "PreferClose")),
		Ports: []corev1.ServicePort{
			{Name: "http", Port: 80 + r.Int32N(2), AppProtocol: new(pick("", "https"))}, {Name: "more", Port: 80 + r.Int32N(2), AppProtocol: new(pick("", "grpc"))},
		},
	}}
}

func randomSlice(r *rand.Rand, meta metav1.ObjectMeta, pick func(...string) string) *discoveryv1.EndpointSlice {
	name, port := pick("http", "more", ""), int32(8080)
	meta.Labels = map[string]string{discoveryv1.LabelServiceName: pick("a", "b", "c")}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: meta, Ports: []discoveryv1.EndpointPort{{Name: &name, Port: &port}}}
	for range r.IntN(3) {
		endpoint := discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.0.%d", r.IntN(4))}, Conditions: discoveryv1.EndpointConditions{
			Ready: new(r.IntN(2) > 0), Serving: new(r.IntN(2) > 0), Terminating: new(r.IntN(2) > 0),
		}}
		if r.IntN(3) > 0 {
			endpoint.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: pick("here", "there")}}}
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	return slice
}

func randomIngress(r *rand.Rand, meta metav1.ObjectMeta, pick func(...string) string) *networkingv1.Ingress {
	meta.CreationTimestamp = metav1.NewTime(time.Unix(r.Int64N(3), 0))
	meta.Namespace = pick("shop", "shop", "zoo")
	meta.Annotations = map[string]string{"nginx.ingress.kubernetes.io/" + pick("guard", "color", "buffer"): pick("1", "red", "true")}
	if r.IntN(3) == 0 {
		meta.Annotations["nginx.ingress.kubernetes.io/also"] = pick("b.example.com", "x.net,b.example.com", "*.net,~^x", "x.net,*.example.com")
	}
	if r.IntN(6) == 0 {
		meta.Annotations["nginx.ingress.kubernetes.io/host-shared-with"] = pick("shop", "zoo", "shop, zoo")
	}
	if r.IntN(6) == 0 {
		meta.Annotations["nginx.ingress.kubernetes.io/canary"] = "7"
	}
	if r.IntN(3) == 0 {
		meta.Annotations["nginx.ingress.kubernetes.io/instead"] = pick("a", "b")
	}
	if r.IntN(3) == 0 {
		meta.Annotations["nginx.ingress.kubernetes.io/own"] = pick("true", "false", "what")
	}
	if r.IntN(3) == 0 {
		meta.Annotations["nginx.ingress.kubernetes.io/checked"] = pick("0", "81", "what")
	}
	if r.IntN(6) == 0 {
		meta.Annotations["nginx.ingress.kubernetes.io/regex"] = "true"
	}
	ing := &networkingv1.Ingress{ObjectMeta: meta}
	if r.IntN(2) == 0 {
		class := pick("nginx", "ours", "theirs")
		ing.Spec.IngressClassName = &class
	}
	backend := func() networkingv1.IngressBackend {
		return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
			Name: pick("a", "b", "c"), Port: networkingv1.ServiceBackendPort{Number: 80 + r.Int32N(2), Name: pick("", "", "http")},
		}}
	}
	if r.IntN(3) == 0 {
		b := backend()
		ing.Spec.DefaultBackend = &b
	}
	for range r.IntN(3) {
		kind := networkingv1.PathType(pick("Exact", "Prefix", "ImplementationSpecific"))
		ing.Spec.Rules = append(ing.Spec.Rules, networkingv1.IngressRule{
			Host: pick("a.example.com", "b.example.com", "*.example.com", ""),
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: pick("", "/", "/x", "/x/", "/x(", "bad"), PathType: &kind, Backend: backend()}},
			}},
		})
	}
	for range r.IntN(2) {
		ing.Spec.TLS = append(ing.Spec.TLS, networkingv1.IngressTLS{
			Hosts: []string{pick("a.example.com", "c.example.com")}, SecretName: pick("", "a", "b", "c"),
		})
	}
	return ing
}
