package kube_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/kube"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

const prefix = "nginx.ingress.kubernetes.io"

var options = types.NamespacedName{Namespace: "headgate", Name: "options"}

func newStore() *store.Store {
	return store.New(store.Settings{
		IngressClass: "nginx", ControllerClass: "k8s.io/ingress-nginx", WatchWithoutClass: true, ConfigMap: options,
	}, build.New(all.Features(), prefix).Refer)
}

// TestTrimChangesNothing takes the objects that build is tested with, adds
// what a cluster adds to them, and builds them before and after they went
// through the source.
func TestTrimChangesNothing(t *testing.T) {
	files, err := filepath.Glob("../../build/testdata/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range archive.Files {
			if strings.HasSuffix(part.Name, ".yaml") {
				t.Run(filepath.Base(file)+"/"+part.Name, func(t *testing.T) { compareBuilds(t, decode(t, string(part.Data))) })
			}
		}
	}
}

func compareBuilds(t *testing.T, objects []object) {
	a := newAPIServer(t)
	before := newStore()
	var wanted []types.NamespacedName
	zoned := slices.ContainsFunc(objects, func(o object) bool { return isNode(o) })
	for _, o := range objects {
		addNoise(o, zoned)
		a.put(o)
		before.Apply(o, false)
		wanted = append(wanted, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	a.put(pod("here", "self"))
	w := start(t, a, func(s *kube.Settings) {
		if s.ConfigMap = options; zoned {
			s.Pod = types.NamespacedName{Namespace: "headgate", Name: "here"}
		}
	})
	w.await("the first batch", func() bool { return len(w.batches) > 0 })
	w.await("the Node", func() bool { return !zoned || w.objects["Node /self"] != nil })
	<-w.source.SubscribeSecrets(wanted, nil)
	<-w.source.SubscribeConfigMaps(wanted, nil)
	after := newStore()
	for _, name := range w.names() {
		text, err := json.Marshal(w.get(name))
		if err != nil || strings.Contains(string(text), "noise") {
			t.Errorf("%s keeps fields that are not read: %s, %v", name, text, err)
		}
		after.Apply(w.get(name), false)
	}
	was, is := buildAll(before), buildAll(after)
	for key, unit := range was {
		if !reflect.DeepEqual(unit, is[key]) {
			t.Errorf("%v is built from whole objects as %+v, from trimmed ones as %+v", key, unit, is[key])
		}
	}
	if len(is) != len(was) {
		t.Errorf("%d units from whole objects, %d from trimmed ones", len(was), len(is))
	}
}

// TestNamespaceKeepsGroup: the private keys of a namespace without the annotation go to other edges.
func TestNamespaceKeepsGroup(t *testing.T) {
	a := newAPIServer(t)
	shop := &corev1.Namespace{}
	shop.Name, shop.Annotations = "shop", map[string]string{source.GroupAnnotation: "a", "example.com/noise": "x"}
	a.put(shop)
	w := start(t, a, func(s *kube.Settings) { s.Namespaces = true })
	group := func(want string) func() bool {
		return func() bool {
			o := w.objects["Namespace /shop"]
			return o != nil && maps.Equal(o.GetAnnotations(), map[string]string{source.GroupAnnotation: want})
		}
	}
	w.await("the group", group("a"))
	shop = shop.DeepCopy()
	shop.Annotations[source.GroupAnnotation] = "b"
	a.put(shop)
	w.await("the other group", group("b"))
}

func buildAll(s *store.Store) map[unit.Key][]any {
	b := build.New(all.Features(), prefix)
	units := map[unit.Key][]any{}
	for _, key := range s.All() {
		built, findings := b.Unit(key, s)
		units[key] = []any{built, findings}
	}
	return units
}

// decode reads documents by their kind. A TestCertificate, which only build's
// tests can make, becomes a Secret that can't be used.
func decode(t *testing.T, text string) []object {
	t.Helper()
	var objects []object
	for document := range strings.SplitSeq(text, "\n---\n") {
		var head struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			t.Fatal(err)
		}
		o := map[string]object{
			"Ingress": &networkingv1.Ingress{}, "IngressClass": &networkingv1.IngressClass{}, "Service": &corev1.Service{},
			"EndpointSlice": &discoveryv1.EndpointSlice{}, "Secret": &corev1.Secret{}, "ConfigMap": &corev1.ConfigMap{},
			"Node":            &corev1.Node{},
			"TestCertificate": &corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{"tls.crt": []byte("x")}},
		}[head.Kind]
		if head.Kind == "Addresses" || head.Kind == "Health" {
			// Another source's.
			continue
		}
		if o == nil {
			t.Fatalf("a document has the kind %q", head.Kind)
		}
		if err := yaml.Unmarshal([]byte(document), o); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

func isNode(o object) bool {
	_, ok := o.(*corev1.Node)
	return ok
}

// addNoise fills in fields that clusters fill in and Headgate does not read.
// Fields about zones are read if zoned.
func addNoise(o object, zoned bool) {
	annotations := map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "noise", "example.com/noise": "x"}
	for name, value := range o.GetAnnotations() {
		annotations[name] = value
	}
	o.SetAnnotations(annotations)
	labels := map[string]string{"app": "noise"}
	for name, value := range o.GetLabels() {
		labels[name] = value
	}
	o.SetLabels(labels)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "noise"}})
	o.SetFinalizers([]string{"noise"})
	o.SetOwnerReferences([]metav1.OwnerReference{{Name: "noise"}})
	noise, yes := "noise", true
	switch o := o.(type) {
	case *networkingv1.Ingress:
		o.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{Hostname: noise}}
	case *networkingv1.IngressClass:
		o.Spec.Parameters = &networkingv1.IngressClassParametersReference{Kind: noise, Name: noise}
	case *corev1.Service:
		o.Spec.ClusterIPs, o.Spec.Selector = []string{noise}, map[string]string{noise: noise}
		if !zoned {
			o.Spec.TrafficDistribution, annotations[corev1.AnnotationTopologyMode] = &noise, noise
		}
		for i := range o.Spec.Ports {
			o.Spec.Ports[i].NodePort = 30000
		}
	case *discoveryv1.EndpointSlice:
		for i := range o.Ports {
			o.Ports[i].AppProtocol = &noise
		}
		for i := range o.Endpoints {
			e := &o.Endpoints[i]
			e.NodeName, e.Zone, e.Hostname, e.TargetRef = &noise, &noise, &noise, &corev1.ObjectReference{Name: noise}
			if !zoned {
				e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: noise}}}
			} else if e.Hints != nil {
				e.Hints.ForNodes = []discoveryv1.ForNode{{Name: noise}}
			}
			if ready := e.Conditions.Ready; ready == nil || *ready {
				e.Conditions.Serving = &yes
			}
		}
	case *corev1.Node:
		o.Spec.ProviderID, o.Status.Phase = noise, "noise"
	case *corev1.ConfigMap:
		o.BinaryData = map[string][]byte{noise: nil}
	}
}
