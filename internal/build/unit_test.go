package build_test

import (
	"testing"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// A store shows what build reads.
var _ build.View = (*store.Store)(nil)

// TestKinds: units of every kind that a store can name are built, and no others.
func TestKinds(t *testing.T) {
	t.Parallel()
	s, builder := newStore(nil), newBuilder()
	for _, of := range unit.Kinds() {
		name := of.Only
		if name == "" {
			name = "a/b"
		}
		func() {
			defer func() {
				if failed := recover() != nil; failed == of.Built {
					t.Errorf("%s: built %v, want %v", of.Kind, !failed, of.Built)
				}
			}()
			if built, _ := builder.Unit(of.Kind.Key(name), s); built.Key != of.Kind.Key(name) {
				t.Errorf("%s is built as %s", of.Kind, built.Key)
			}
		}()
	}
}
