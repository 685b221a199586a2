package build_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// TestMissingConfigMap: there is a finding exactly as long as a flag names a ConfigMap that
// does not exist. An empty one is enough.
func TestMissingConfigMap(t *testing.T) {
	t.Parallel()
	missing := func(s *store.Store) bool {
		_, findings := newBuilder().Globals(s)
		return slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Code == finding.MissingObject })
	}
	if missing(store.New(store.Settings{}, newBuilder().Refer)) {
		t.Error("without the flag, a ConfigMap is missing")
	}
	s := newStore(nil)
	options := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "headgate", Name: "options"}}
	for _, deleted := range []bool{false, true} {
		if missing(s) == deleted {
			t.Errorf("deleted %v: missing before", deleted)
		}
		if touched := s.Apply(options, deleted); !slices.Contains(touched, unit.GlobalsKey) {
			t.Errorf("deleted %v: the globals are not built again but %v", deleted, touched)
		}
		if missing(s) != deleted {
			t.Errorf("deleted %v: missing %v", deleted, !deleted)
		}
	}
}
