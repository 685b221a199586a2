package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

const controllerClass = "k8s.io/ingress-nginx"

// refer takes the aliases of an Ingress from its annotation "aliases".
func refer(ing *networkingv1.Ingress, options *corev1.ConfigMap) spec.References {
	refs := build.New(nil, "x").Refer(ing, options)
	if ing == nil {
		return refs
	}
	refs.Aliases = strings.Fields(ing.Annotations["aliases"])
	return refs
}

func settings() store.Settings {
	return store.Settings{
		IngressClass: "nginx", ControllerClass: controllerClass,
		ConfigMap: types.NamespacedName{Namespace: "headgate", Name: "options"},
	}
}

// ingress makes an Ingress "shop/NAME" whose routes read "host path service".
func ingress(name, class string, routes ...string) *networkingv1.Ingress {
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if class != "" {
		ing.Spec.IngressClassName = &class
	}
	for _, route := range routes {
		parts := strings.Fields(route)
		ing.Spec.Rules = append(ing.Spec.Rules, networkingv1.IngressRule{
			Host: parts[0],
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: parts[1], Backend: networkingv1.IngressBackend{
					Service: &networkingv1.IngressServiceBackend{
						Name: parts[2], Port: networkingv1.ServiceBackendPort{Number: 80},
					},
				}}},
			}},
		})
	}
	return ing
}

func withTLS(ing *networkingv1.Ingress, secret string) *networkingv1.Ingress {
	ing.Spec.TLS = []networkingv1.IngressTLS{{SecretName: secret}}
	return ing
}

func annotated(ing *networkingv1.Ingress, key, value string) *networkingv1.Ingress {
	ing.Annotations = map[string]string{key: value}
	return ing
}

func class(name, controller string) *networkingv1.IngressClass {
	return &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: controller},
	}
}

func service(name string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}},
	}
}

func slice(name, service string, addresses ...string) *discoveryv1.EndpointSlice {
	port := int32(8080)
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		Ports: []discoveryv1.EndpointPort{{Port: &port}},
	}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return s
}

func secret(name, content string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string][]byte{"tls.crt": []byte(content)},
	}
}

func configMap(name, color string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "headgate", Name: name}, Data: map[string]string{"color": color},
	}
}

// base is what every step of TestTouched starts from.
func base() *store.Store {
	s := store.New(settings(), refer)
	for _, o := range []metav1.Object{
		class("nginx", controllerClass), class("other", "example.com/other"),
		withTLS(ingress("web", "nginx", "a.example / one", "b.example / two"), "tls"),
		ingress("more", "nginx", "a.example /more one"),
		withTLS(ingress("foreign", "other", "a.example /foreign one", "f.example / foreign"), "foreign"),
		ingress("early", "later", "e.example / early"),
		service("one", 80), slice("one-1", "one", "10.0.0.1"), service("unused", 80), slice("unused-1", "unused", "10.0.0.1"),
		secret("tls", "x"), secret("foreign", "x"), configMap("options", "red"), configMap("foreign", "red"),
	} {
		s.Apply(o, false)
	}
	return s
}

func meta(edit func(*metav1.ObjectMeta), o *networkingv1.Ingress) *networkingv1.Ingress {
	edit(&o.ObjectMeta)
	return o
}

func TestTouched(t *testing.T) {
	web := func() *networkingv1.Ingress {
		return withTLS(ingress("web", "nginx", "a.example / one", "b.example / two"), "tls")
	}
	notReady := slice("one-1", "one", "10.0.0.1")
	no := false
	notReady.Endpoints[0].Conditions.Ready = &no
	status := web()
	status.ResourceVersion = "2"
	status.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}

	for _, c := range []struct {
		about   string
		object  metav1.Object
		deleted bool
		want    string
	}{
		{"the same Ingress", web(), false, ""},
		{"an Ingress's status", status, false, ""},
		{"aliases", annotated(web(), "aliases", "www.example *.www"), false,
			"host a.example, host b.example, name a.example, name b.example, name www.example, patterns"},
		{"an annotation", annotated(web(), "x", "y"), false, "host a.example, host b.example, name a.example, name b.example"},
		{
			"a younger Ingress", meta(func(m *metav1.ObjectMeta) { m.CreationTimestamp = metav1.NewTime(time.Unix(1, 0)) }, web()),
			false, "host a.example, host b.example, name a.example, name b.example",
		},
		{
			"another host and Service", ingress("web", "nginx", "a.example / one", "c.example / three"), false,
			"backend shop/three/80, backend shop/two/80, host a.example, host b.example, host c.example, " +
				"name a.example, name b.example, name c.example",
		},
		{"a deleted Ingress: another one still uses a backend", web(), true, "backend shop/two/80, host a.example, host b.example, name a.example, name b.example"},
		{"an Ingress that comes to a host", ingress("new", "nginx", "a.example /new one"), false, "host a.example, name a.example"},
		{"an Ingress that was not there, deleted", ingress("missing", "nginx"), true, ""},
		{"a new Ingress of another class", ingress("new", "other", "a.example / one"), false, ""},
		{"an Ingress of another class, changed", ingress("foreign", "other", "a.example / one"), false, ""},
		{"an Ingress of another class, deleted", ingress("foreign", "other"), true, ""},
		{
			"an Ingress that leaves our class", ingress("more", "other", "a.example /more one"), false,
			"host a.example, name a.example",
		},
		{
			"an Ingress that comes to our class", ingress("foreign", "nginx", "f.example / foreign"), false,
			"backend shop/foreign/80, host f.example, name f.example",
		},
		{"an IngressClass that an Ingress waited for", class("later", controllerClass), false, "backend shop/early/80, host e.example, name e.example"},
		{"an IngressClass of another controller", class("later", "example.com/other"), false, ""},
		{"an IngressClass again", class("nginx", controllerClass), false, ""},
		{
			"our IngressClass deleted", class("nginx", ""), true,
			"backend shop/one/80, backend shop/two/80, host a.example, host b.example, name a.example, name b.example",
		},
		{"an IngressClass that was not there, deleted", class("missing", ""), true, ""},
		{"the same Service", service("one", 80), false, ""},
		{"a Service's port", service("one", 81), false, "backend shop/one/80"},
		{"a Service that was missed", service("two", 80), false, "backend shop/two/80"},
		{"a Service deleted", service("one", 80), true, "backend shop/one/80"},
		{"an unused Service", service("unused", 81), false, ""},
		{"a Service of a foreign Ingress", service("foreign", 81), false, ""},
		{"the same slice", slice("one-1", "one", "10.0.0.1"), false, ""},
		{"an endpoint", slice("one-1", "one", "10.0.0.1", "10.0.0.2"), false, "backend shop/one/80"},
		{"an endpoint's readiness", notReady, false, "backend shop/one/80"},
		{"a slice that goes to another Service", slice("one-1", "two", "10.0.0.1"), false, "backend shop/one/80, backend shop/two/80"},
		{"a slice deleted", slice("one-1", ""), true, "backend shop/one/80"},
		{"a slice of an unused Service", slice("unused-1", "unused", "10.0.0.2"), false, ""},
		{"the same Secret", secret("tls", "x"), false, ""},
		{"a Secret", secret("tls", "y"), false, "name a.example, name b.example"},
		{"a Secret deleted", secret("tls", ""), true, "name a.example, name b.example"},
		{"a Secret without a reference", secret("new", "y"), false, ""},
		{"a Secret of a foreign Ingress", secret("foreign", "y"), false, ""},
		{"the ConfigMap", configMap("options", "blue"), false, "globals, backend shop/one/80, backend shop/two/80, host _, host a.example, host b.example"},
		{"the ConfigMap deleted", configMap("options", ""), true, "globals, backend shop/one/80, backend shop/two/80, host _, host a.example, host b.example"},
		{"the same ConfigMap", configMap("options", "red"), false, ""},
		{"another ConfigMap", configMap("foreign", "blue"), false, ""},
		{"a kind that is not read", &corev1.Namespace{}, false, ""},
	} {
		if got := text(base().Apply(c.object, c.deleted)); got != c.want {
			t.Errorf("%s touches %q, want %q", c.about, got, c.want)
		}
	}
}

func text(keys []unit.Key) string {
	var list []string
	for _, k := range keys {
		list = append(list, k.String())
	}
	return strings.Join(list, ", ")
}

func TestAll(t *testing.T) {
	want := "globals, default-certificate, backend shop/one/80, backend shop/two/80, host _, host a.example, host b.example, " +
		"name _, name a.example, name b.example, patterns"
	if got := text(base().All()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := text(store.New(store.Settings{}, refer).All()); got != "globals, default-certificate, host _, name _, patterns" {
		t.Errorf("an empty store has %q", got)
	}
}

// TestNothingStays deletes everything and looks for what an index forgot.
func TestNothingStays(t *testing.T) {
	s := base()
	for _, o := range []metav1.Object{
		ingress("web", ""), ingress("more", ""), ingress("foreign", ""), ingress("early", ""),
		slice("one-1", ""), slice("unused-1", ""),
	} {
		s.Apply(o, true)
	}
	if got := text(s.All()); got != "globals, default-certificate, host _, name _, patterns" {
		t.Errorf("left are %q", got)
	}
	if got := s.EndpointSlices(types.NamespacedName{Namespace: "shop", Name: "one"}); len(got) != 0 {
		t.Errorf("%d slices are left", len(got))
	}
	if got := s.Apply(class("later", controllerClass), false); len(got) != 0 {
		t.Errorf("an IngressClass still touches %v", got)
	}
}

func TestClasses(t *testing.T) {
	const annotation = "kubernetes.io/ingress.class"
	ours := map[string]*networkingv1.Ingress{
		"class ours":                      ingress("x", "ours", "h.example / one"),
		"class theirs":                    ingress("x", "theirs", "h.example / one"),
		"class nginx, which is not there": ingress("x", "nginx", "h.example / one"),
		"annotation nginx":                annotated(ingress("x", "", "h.example / one"), annotation, "nginx"),
		"annotation other":                annotated(ingress("x", "", "h.example / one"), annotation, "other"),
		"class theirs and annotation":     annotated(ingress("x", "theirs", "h.example / one"), annotation, "nginx"),
		"class ours and annotation other": annotated(ingress("x", "ours", "h.example / one"), annotation, "other"),
		"nothing":                         ingress("x", "", "h.example / one"),
	}
	plain, without, classless, byName := settings(), settings(), settings(), settings()
	byName.ClassByName, byName.IngressClass = true, "theirs"
	without.WatchWithoutClass = true
	classless.Classless = true
	for _, c := range []struct {
		about    string
		settings store.Settings
		want     []string
	}{
		{"plain", plain, []string{"annotation nginx", "class ours", "class ours and annotation other"}},
		{"watch without class", without, []string{"annotation nginx", "class ours", "class ours and annotation other", "nothing"}},
		{"by name", byName, []string{"class ours", "class ours and annotation other", "class theirs", "class theirs and annotation"}},
		{"classless", classless, []string{
			"annotation nginx", "class nginx, which is not there", "class ours", "class ours and annotation other", "nothing",
		}},
	} {
		var taken []string
		for about, ing := range ours {
			s := store.New(c.settings, refer)
			s.Apply(class("ours", controllerClass), false)
			s.Apply(class("theirs", "example.com/other"), false)
			s.Apply(ing, false)
			if len(s.Ingresses("h.example")) > 0 {
				taken = append(taken, about)
			}
		}
		slices.Sort(taken)
		if fmt.Sprint(taken) != fmt.Sprint(c.want) {
			t.Errorf("%s takes %q, want %q", c.about, taken, c.want)
		}
	}
}

// Only the oldest Ingress with aliases gives a host its aliases: another one's
// change may bring or take those of all.
func TestAliasesBesideOthers(t *testing.T) {
	s := base()
	s.Apply(annotated(ingress("named", "nginx", "n.example / one"), "aliases", "named.net"), false)
	got := text(s.Apply(annotated(ingress("more", "nginx", "n.example /more one"), "aliases", "n.net"), false))
	if want := "host a.example, host n.example, name a.example, name n.example, name n.net, name named.net"; got != want {
		t.Errorf("touched %q, want %q", got, want)
	}
}

// An Ingress's aliases are not counted again for each of its hosts.
func TestManyAliasesOfManyHosts(t *testing.T) {
	const many = 2000
	var routes, aliases []string
	for i := range many {
		routes = append(routes, fmt.Sprintf("h%d.example /%d one", i, i))
		aliases = append(aliases, fmt.Sprintf("a%d.example", i))
	}
	calls := 0
	s := store.New(settings(), func(ing *networkingv1.Ingress, options *corev1.ConfigMap) spec.References {
		if ing != nil {
			calls++
		}
		return refer(ing, options)
	})
	s.Apply(class("nginx", controllerClass), false)
	large := func() *networkingv1.Ingress {
		return annotated(ingress("large", "nginx", routes...), "aliases", strings.Join(aliases, " "))
	}
	bounded := func(about string, keys []unit.Key, want int) {
		t.Helper()
		if len(keys) != want {
			t.Errorf("%s touches %d units, want %d", about, len(keys), want)
		}
		// Before duplicates go there may be some per host and alias, not one for each pair.
		if most := 20 * many; cap(keys) > most {
			t.Errorf("%s collects %d keys, %d are enough", about, cap(keys), most)
		}
	}
	bounded("a new Ingress", s.Apply(large(), false), 3*many+1)
	bounded("a changed one", s.Apply(withTLS(large(), "x"), false), 3*many)
	bounded("a younger one beside it", s.Apply(ingress("more", "nginx", routes...), false), 3*many)
	bounded("a deleted one", s.Apply(ingress("large", ""), true), 3*many)
	if calls != 3 {
		t.Errorf("Ingresses were read %d times", calls)
	}
}

func namespace(name string, pairs map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: pairs}}
}

// Whose namespace is selected is ours from then on, and no longer when it is
// not. A namespace that is not there is not selected.
func TestNamespaces(t *testing.T) {
	selecting := settings()
	selecting.Namespaces = labels.SelectorFromSet(labels.Set{"team": "a"})
	s := store.New(selecting, refer)
	s.Apply(class("nginx", controllerClass), false)
	const all = "backend shop/one/80, host a.example, name a.example"
	for _, step := range []struct {
		about  string
		object metav1.Object
		gone   bool
		want   string
	}{
		{"an Ingress of no namespace", ingress("web", "nginx", "a.example / one"), false, ""},
		{"its namespace with other labels", namespace("shop", map[string]string{"team": "b"}), false, ""},
		{"another one that is selected", namespace("other", map[string]string{"team": "a"}), false, ""},
		{"its namespace selected", namespace("shop", map[string]string{"team": "a", "x": "y"}), false, all},
		{"a label that is not read", namespace("shop", map[string]string{"team": "a"}), false, ""},
		{"its namespace with other labels again", namespace("shop", nil), false, all},
		{"selected again", namespace("shop", map[string]string{"team": "a"}), false, all},
		{"gone", namespace("shop", nil), true, all},
	} {
		if got := text(s.Apply(step.object, step.gone)); got != step.want {
			t.Errorf("%s touches %q, want %q", step.about, got, step.want)
		}
	}
}

func TestNoCatchAll(t *testing.T) {
	without := settings()
	without.Scope.NoCatchAll = true
	s := store.New(without, refer)
	s.Apply(class("nginx", controllerClass), false)
	hostless := ingress("hostless", "nginx", "x / one")
	hostless.Spec.Rules[0].Host = ""
	catchAll := ingress("web", "nginx", "a.example / one")
	catchAll.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "one", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	if got := text(s.Apply(catchAll, false)); got != "refusal shop/web" {
		t.Errorf("an Ingress with a spec.defaultBackend touches %q", got)
	}
	if shop := (types.NamespacedName{Namespace: "shop", Name: "web"}); s.Refused(shop) != catchAll || s.Serves(shop) {
		t.Error("an Ingress with a spec.defaultBackend is not refused")
	}
	if got, want := text(s.Apply(hostless, false)), "host _, name _"; !strings.Contains(got, want) {
		t.Errorf("a rule without a host touches %q, want %q", got, want)
	}
}

// An Ingress that deep inspection leaves out is as one that is not there, and
// its refusal is a unit; mended, it is served.
func TestDeepInspect(t *testing.T) {
	inspecting := settings()
	inspecting.Scope.DeepInspect = true
	s := store.New(inspecting, refer)
	s.Apply(class("nginx", controllerClass), false)
	const all = "backend shop/one/80, host a.example, name a.example"
	bad := ingress("web", "nginx", "a.example /etc/passwd one")
	for _, step := range []struct {
		about   string
		change  metav1.Object
		deleted bool
		want    string
		refused bool
	}{
		{"a bad one", bad, false, "refusal shop/web", true},
		{"a bad one of a foreign class", ingress("foreign", "other", "a.example /etc/passwd one"), false, "", true},
		{"its class's end", class("nginx", controllerClass), true, "refusal shop/web", false},
		{"its class's return", class("nginx", controllerClass), false, "refusal shop/web", true},
		{"mended", ingress("web", "nginx", "a.example / one"), false, all + ", refusal shop/web", false},
		{"bad again", bad, false, all + ", refusal shop/web", true},
		{"gone", bad, true, "refusal shop/web", false},
	} {
		if got := text(s.Apply(step.change, step.deleted)); got != step.want {
			t.Errorf("%s touches %q, want %q", step.about, got, step.want)
		}
		if got := s.Refused(types.NamespacedName{Namespace: "shop", Name: "web"}); (got != nil) != step.refused {
			t.Errorf("%s: refused is %v", step.about, got)
		}
	}
	s.Apply(bad, false)
	if !slices.Contains(s.All(), unit.Refusal.Key("shop/web")) {
		t.Error("the refusal is not among all units")
	}
}
