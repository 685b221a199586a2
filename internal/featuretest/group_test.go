package featuretest_test

import (
	"fmt"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/featuretest"
	"github.com/headgate/headgate/internal/model"
)

// TestGroup: golden files show of a group what a host gets by it.
func TestGroup(t *testing.T) {
	authority := feature.Setting[feature.ObjectName]{Annotation: "authority", Parse: feature.Object, OnInvalid: feature.Deny, Refers: feature.Secret}
	depth := feature.Setting[int]{Annotation: "depth", Default: 1, Parse: feature.Int(0, 9)}
	featuretest.Golden(t, feature.Feature{
		Name: "clients", Settings: []feature.Declared{authority, depth},
		Host: func(*feature.Reader) any { return "verify" },
		Handshake: func(r *feature.Reader, p *model.TLSPolicy) {
			if secret, ok := feature.SecretOf(r, authority); ok {
				p.Ciphers, _ = model.NewCiphers(fmt.Sprintf("%s:%d", secret["ca"], depth.Get(r)))
			}
		},
		Group: &feature.Group{Leading: authority, Bad: "refuse"},
	})
}
