package store_test

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/store"
)

// TestUnserved: each way not to be ours has a reason, and what is ours has
// none.
func TestUnserved(t *testing.T) {
	selector, err := labels.Parse("team=a")
	if err != nil {
		t.Fatal(err)
	}
	named := func(class string) func(*networkingv1.Ingress) {
		return func(ing *networkingv1.Ingress) { ing.Spec.IngressClassName = &class }
	}
	for _, c := range []struct {
		name     string
		settings store.Settings
		change   func(*networkingv1.Ingress)
		why      string // empty for an Ingress that is ours
	}{
		{"ours", store.Settings{}, named("ours"), ""},
		{"another host", store.Settings{}, func(ing *networkingv1.Ingress) { ing.Spec.Rules[0].Host = "other.test" }, ""},
		{"no class", store.Settings{}, func(*networkingv1.Ingress) {}, "it names no class"},
		{"no class, and that is fine", store.Settings{WatchWithoutClass: true}, func(*networkingv1.Ingress) {}, ""},
		{"gone class", store.Settings{}, named("gone"), "its IngressClass gone does not exist"},
		{"their class", store.Settings{}, named("theirs"), "its IngressClass theirs is for the controller x/theirs, not x/ours"},
		{"annotation", store.Settings{}, func(ing *networkingv1.Ingress) {
			ing.Annotations = map[string]string{"kubernetes.io/ingress.class": "other"}
		}, `its annotation kubernetes.io/ingress.class is "other", not "nginx"`},
		{"namespace", store.Settings{Namespaces: selector}, named("ours"), "--watch-namespace-selector team=a does not select its namespace default"},
		{"catch-all", store.Settings{Scope: spec.Scope{NoCatchAll: true}}, func(ing *networkingv1.Ingress) {
			named("ours")(ing)
			ing.Spec.DefaultBackend = &networkingv1.IngressBackend{}
		}, "--disable-catch-all"},
	} {
		c.settings.IngressClass, c.settings.ControllerClass = "nginx", "x/ours"
		s := store.New(c.settings, refer)
		for _, class := range []string{"ours", "theirs"} {
			s.Apply(&networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: networkingv1.IngressClassSpec{Controller: "x/" + class}}, false)
		}
		ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
		ing.Spec.Rules = []networkingv1.IngressRule{{Host: "A.test."}}
		c.change(ing)
		s.Apply(ing, false)
		got := s.Unserved([]string{"a.test", "*.test"})
		if (len(got) == 0) != (c.why == "") || len(got) > 0 && (got[0].Ingress != ing || !strings.Contains(got[0].Why, c.why)) {
			t.Errorf("%s: got %+v, want %q", c.name, got, c.why)
		}
	}
}
