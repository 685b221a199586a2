package build_test

import (
	"fmt"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// mostAlternatives is how many a route may have, and mostLost how many paths
// without a route an alternative may have.
const mostAlternatives, mostLost = 16, 16

// standsAside is an Ingress of that year that stands aside with the paths /p-0
// and so on, as far as count, and the Service of its name.
func standsAside(name string, year, count int) *networkingv1.Ingress {
	ing := manyPaths(name, year, "/p-%d", count)
	ing.Annotations = map[string]string{annotationPrefix + "aside": "10"}
	for i := range ing.Spec.Rules[0].HTTP.Paths {
		ing.Spec.Rules[0].HTTP.Paths[i].Backend.Service.Name = name
	}
	return ing
}

// alternativesOf builds a.example.com with a route /p-0 beside what stands aside,
// and returns the alternatives of the route.
func alternativesOf(t *testing.T, asides ...metav1.Object) ([]model.Canary, []finding.Finding) {
	t.Helper()
	main := manyPaths("main", 2026, "/p-%d", 1)
	main.Annotations = nil
	host, _, fs := newBuilder().Host("a.example.com", newStore(append(asides, main)))
	i := slices.IndexFunc(host.Routes, func(r model.Route) bool { return r.Path == "/p-0" })
	if i < 0 {
		t.Fatalf("no route /p-0 among %v", host.Routes)
	}
	policies := host.Routes[i].Policies
	if len(policies) == 0 {
		return nil, fs
	}
	return policies[0].Value.([]model.Canary), fs
}

// TestAlternativesOfARouteAreBounded has the youngest of too many refused.
func TestAlternativesOfARouteAreBounded(t *testing.T) {
	for _, count := range []int{mostAlternatives, mostAlternatives + 3} {
		var asides []metav1.Object
		for i := range count {
			asides = append(asides, standsAside(fmt.Sprintf("aside-%02d", count-i), 2100-i, 1))
		}
		alternatives, fs := alternativesOf(t, asides...)
		if len(alternatives) != mostAlternatives || len(fs) != count-mostAlternatives {
			t.Fatalf("%d stand aside: %d alternatives, findings %v", count, len(alternatives), fs)
		}
		for i, a := range alternatives {
			if want := fmt.Sprintf("shop/aside-%02d/80", i+1); a.Backend != want {
				t.Errorf("%d stand aside: alternative %d is %s, want %s", count, i, a.Backend, want)
			}
		}
		for i, f := range fs {
			if want := fmt.Sprintf("ingress/shop/aside-%02d", mostAlternatives+i+1); f.Object != want || f.Code != finding.TooMany {
				t.Errorf("%d stand aside: finding %v, want one of %s", count, f, want)
			}
		}
	}
}

// TestLostPathsOfAnAlternativeAreBounded has an alternative with more paths
// without a route than it can be kept from take no request at all.
func TestLostPathsOfAnAlternativeAreBounded(t *testing.T) {
	alternatives, fs := alternativesOf(t, standsAside("aside", 2027, mostLost+1))
	if len(alternatives) != 1 || len(alternatives[0].Except) != mostLost || len(fs) != mostLost {
		t.Errorf("%d lost paths: %v, findings %v", mostLost, alternatives, fs)
	}
	for _, f := range fs {
		if f.Code != finding.MissingObject {
			t.Errorf("%d lost paths: finding %v", mostLost, f)
		}
	}
	alternatives, fs = alternativesOf(t, standsAside("aside", 2027, mostLost+2))
	if len(alternatives) != 0 || len(fs) != mostLost+2 || fs[0].Field != "spec.rules[0].http.paths[0]" || fs[0].Code != finding.TooMany {
		t.Errorf("%d lost paths: %v, findings %v", mostLost+1, alternatives, fs)
	}
}
