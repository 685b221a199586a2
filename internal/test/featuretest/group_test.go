package featuretest_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/test/featuretest"
)

// TestGroup: golden files show of a group what a host gets by it.
func TestGroup(t *testing.T) {
	authority := feature.Setting[feature.ObjectName]{Annotation: "authority", Parse: feature.Object, OnInvalid: feature.Deny, Refers: feature.Secret, Scope: feature.ScopeHost, Merge: feature.MergeTogether, Leads: true}
	depth := feature.Setting[int]{Annotation: "depth", Default: 1, Parse: feature.Int(0, 9), OnInvalid: feature.Deny, Scope: feature.ScopeHost, Merge: feature.MergeTogether}
	featuretest.Golden(t, feature.Feature{
		Name: "clients", Settings: []feature.AnySetting{authority, depth},
		Host: func(v feature.Values, out *feature.HostOut) {
			if secret, ok := feature.FromSecret(v, authority, "", maps.Clone[map[string][]byte]); ok {
				out.TLS = fmt.Sprintf("%s:%d", secret["ca"], depth.Get(v))
				out.Policy = "verify"
			}
		},
	}, "testdata")
}
