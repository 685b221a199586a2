package store_test

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/store"
)

func from(namespace string, year int, ing *networkingv1.Ingress) *networkingv1.Ingress {
	ing.Namespace = namespace
	ing.CreationTimestamp = metav1.NewTime(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
	return ing
}

// TestTheWildcardAboveTouches changes nothing but the Ingress of a wildcard: the units
// of names below it are touched if, and only if, that changes whose they are, or under
// whose certificate.
func TestTheWildcardAboveTouches(t *testing.T) {
	wild := func(year int) *networkingv1.Ingress {
		return from("wild", year, withTLS(ingress("wild", "nginx", "*.example / w"), "tls"))
	}
	own := "backend wild/w/80, host *.example, name *.example"
	below := "backend wild/w/80, host *.example, host a.example, name *.example, name a.example, name www.example"
	for _, c := range []struct {
		about         string
		mode          string
		before, after *networkingv1.Ingress
		deleted       bool
		want          string
	}{
		{"an older one comes", "namespace", nil, wild(2020), false, below},
		{"an older one goes", "namespace", wild(2020), wild(2020), true, below},
		{"a younger one comes", "namespace", nil, wild(2030), false, own},
		{"one of the same namespace comes", "namespace", nil, from("shop", 2030, withTLS(ingress("wild", "nginx", "*.example / w"), "tls")), false, "backend shop/w/80, host *.example, name *.example"},
		{"one without a certificate comes", "namespace", nil, from("wild", 2020, ingress("wild", "nginx", "*.example / w")), false, own},
		{"one gets its certificate", "namespace", from("wild", 2020, ingress("wild", "nginx", "*.example / w")), wild(2020), false, "host *.example, host a.example, name *.example, name a.example, name www.example"},
		{"one gets older", "namespace", wild(2030), wild(2020), false, "host *.example, host a.example, name *.example, name a.example, name www.example"},
		{"one comes, and names are shared", "shared", nil, wild(2020), false, "backend wild/w/80, host *.example, name *.example, name a.example, name www.example"},
		{"one without a certificate comes, and names are shared", "shared", nil, from("wild", 2020, ingress("wild", "nginx", "*.example / w")), false, own},
		{"one of the same namespace comes, and names are shared", "shared", nil, from("shop", 2030, withTLS(ingress("wild", "nginx", "*.example / w"), "tls")), false, "backend shop/w/80, host *.example, name *.example"},
	} {
		s := store.New(settings(), refer)
		s.Apply(class("nginx", controllerClass), false)
		options := configMap("options", "red")
		options.Data = map[string]string{"host-ownership": c.mode}
		s.Apply(options, false)
		s.Apply(from("shop", 2025, annotated(ingress("web", "nginx", "a.example / one"), "aliases", "www.example")), false)
		if c.before != nil {
			s.Apply(c.before, false)
		}
		if got := text(s.Apply(c.after, c.deleted)); got != c.want {
			t.Errorf("%s: touches %q, want %q", c.about, got, c.want)
		}
	}
}

// TestOwner: the oldest claim of any sort counts, and only canaries claim nothing.
func TestOwner(t *testing.T) {
	s := store.New(settings(), refer)
	s.Apply(class("nginx", controllerClass), false)
	options := configMap("options", "red")
	options.Data = map[string]string{"host-ownership": "namespace"}
	s.Apply(options, false)
	first := from("one", 2020, annotated(ingress("a", "nginx", "a.example / one"), "aliases", "b.example"))
	second := from("two", 2021, ingress("b", "nginx", "b.example / two"))
	s.Apply(first, false)
	s.Apply(second, false)
	if owner := s.Owner("b.example"); owner.Ingress != first || len(s.Ingresses("b.example")) != 0 || len(s.Strangers("b.example")) != 1 {
		t.Errorf("b.example: %v, %v, %v", owner, s.Ingresses("b.example"), s.Strangers("b.example"))
	}
	if got := text(s.Apply(first, true)); got != "backend one/one/80, host a.example, host b.example, name a.example, name b.example" {
		t.Errorf("the owner's end touches %q", got)
	}
	if owner := s.Owner("b.example"); owner.Ingress != second || len(s.Ingresses("b.example")) != 1 || len(s.Strangers("b.example")) != 0 {
		t.Errorf("b.example is not passed on: %v", owner)
	}
	if owner := s.Owner("unowned.example"); owner.Ingress != nil {
		t.Errorf("unowned.example is %v's", owner)
	}
}
