package store_test

import (
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/store"
)

// TestDrainIngresses: each call returns the Ingresses of our class that came,
// changed or went, in their newest version.
func TestDrainIngresses(t *testing.T) {
	s := store.New(settings(), build.New(nil, "x").Refer)
	want := func(when, want string) {
		t.Helper()
		if got := selected(s.DrainIngresses()); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	want("at first", "")
	web, other := ingress("web", "ours", "a.test / web"), ingress("other", "theirs", "a.test / web")
	s.Apply(web, false)
	s.Apply(other, false)
	want("before the class", "")
	s.Apply(class("ours", controllerClass), false)
	want("with the class", "+web@")
	want("again", "")

	if touched := s.Apply(shown(web, "192.0.2.1"), false); len(touched) > 0 {
		t.Errorf("a status touches %v", touched)
	}
	s.Apply(shown(other, "192.0.2.2"), false)
	want("another status", "+web@192.0.2.1")
	s.Apply(shown(web, "192.0.2.3"), false)
	s.Apply(shown(ingress("web", "ours", "b.test / web"), "192.0.2.4"), false)
	want("two versions", "+web@192.0.2.4")

	s.Apply(ingress("web", "theirs", "b.test / web"), false)
	want("another class", "-web")
	s.Apply(ingress("web", "ours", "b.test / web"), false)
	s.Apply(web, true)
	want("come and gone", "-web")
	s.Apply(web, true)
	s.Apply(web, false)
	want("back", "+web@")
	s.Apply(class("ours", controllerClass), true)
	want("without the class", "-web")
}

func shown(ing *networkingv1.Ingress, ip string) *networkingv1.Ingress {
	now := ing.DeepCopy()
	now.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: ip}}
	return now
}

func selected(s store.Selection) string {
	var words []string
	for _, ing := range s.Put {
		word := "+" + ing.Name + "@"
		for _, e := range ing.Status.LoadBalancer.Ingress {
			word += e.IP
		}
		words = append(words, word)
	}
	for _, name := range s.Gone {
		words = append(words, "-"+name.Name)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}
