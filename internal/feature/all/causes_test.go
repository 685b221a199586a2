package all_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
)

// TestCauses: each effect has one cause, which is a setting of its feature.
func TestCauses(t *testing.T) {
	causes := map[feature.Effect]int{}
	for _, f := range all.Features() {
		settings := map[string]bool{}
		for _, s := range f.Settings {
			settings[s.Spec().Annotation], settings[s.Spec().Key] = true, true
		}
		for effect, name := range f.Causes {
			causes[effect]++
			if name == "" || !settings[name] {
				t.Errorf("%s: %q is not a setting of the feature (cause of %s)", f.Name, name, effect)
			}
		}
	}
	for _, effect := range []feature.Effect{feature.WWWRedirect, feature.RejectUnknown, feature.FallbackBackend, feature.ErrorPage, feature.AnyAuth, feature.TrustedPeers, feature.Expressions} {
		if causes[effect] != 1 {
			t.Errorf("%s has %d causes, want 1", effect, causes[effect])
		}
		delete(causes, effect)
	}
	for effect := range causes {
		t.Errorf("this test lacks %s", effect)
	}
}
