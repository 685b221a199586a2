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

// maxCanaries is how many a route may have, and maxLost how many paths
// without a route a canary may have.
const maxCanaries, maxLost = 16, 16

// isCanary is a canary of that year with the paths /p-0
// and so on, as far as count, and the Service of its name.
func isCanary(name string, year, count int) *networkingv1.Ingress {
	ing := manyPaths(name, year, "/p-%d", count)
	ing.Annotations = map[string]string{annotationPrefix + "canary": "10"}
	for i := range ing.Spec.Rules[0].HTTP.Paths {
		ing.Spec.Rules[0].HTTP.Paths[i].Backend.Service.Name = name
	}
	return ing
}

// canariesOf builds a.example.com with a route /p-0 beside canaries,
// and returns the canaries of the route.
func canariesOf(t *testing.T, canaries ...metav1.Object) ([]model.Canary, []finding.Finding) {
	t.Helper()
	main := manyPaths("main", 2026, "/p-%d", 1)
	main.Annotations = nil
	host, _, fs := newBuilder().Host("a.example.com", newStore(append(canaries, main)))
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
	for _, count := range []int{maxCanaries, maxCanaries + 3} {
		var canaries []metav1.Object
		for i := range count {
			canaries = append(canaries, isCanary(fmt.Sprintf("canary-%02d", count-i), 2100-i, 1))
		}
		got, fs := canariesOf(t, canaries...)
		if len(got) != maxCanaries || len(fs) != count-maxCanaries {
			t.Fatalf("%d canaries: the route has %d, findings %v", count, len(got), fs)
		}
		for i, a := range got {
			if want := fmt.Sprintf("shop/canary-%02d/80", i+1); a.Backend != want {
				t.Errorf("%d canaries: number %d is %s, want %s", count, i, a.Backend, want)
			}
		}
		for i, f := range fs {
			if want := fmt.Sprintf("ingress/shop/canary-%02d", maxCanaries+i+1); f.Object != want || f.Code != finding.TooMany {
				t.Errorf("%d canaries: finding %v, want one of %s", count, f, want)
			}
		}
	}
}

// TestLostPathsOfACanaryAreBounded has a canary with more paths
// without a route than it can be kept from take no request at all.
func TestLostPathsOfACanaryAreBounded(t *testing.T) {
	got, fs := canariesOf(t, isCanary("canary", 2027, maxLost+1))
	if len(got) != 1 || len(got[0].Except) != maxLost || len(fs) != maxLost {
		t.Errorf("%d lost paths: %v, findings %v", maxLost, got, fs)
	}
	for _, f := range fs {
		if f.Code != finding.MissingObject {
			t.Errorf("%d lost paths: finding %v", maxLost, f)
		}
	}
	got, fs = canariesOf(t, isCanary("canary", 2027, maxLost+2))
	if len(got) != 0 || len(fs) != maxLost+2 || fs[0].Field != "spec.rules[0].http.paths[0]" || fs[0].Code != finding.TooMany {
		t.Errorf("%d lost paths: %v, findings %v", maxLost+1, got, fs)
	}
}
