package review

import (
	"context"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
)

// Load applies all objects.
func Load(r *Reviewer, changes []source.Change) { r.apply(changes) }

// State is what the Reviewer builds by.
func State(r *Reviewer) (*store.Store, *build.Builder) { return r.store, r.builder }

// VerdictOf is what becomes of an Ingress with a finding.
var VerdictOf = verdictOf

// HoldTurn takes the turn of a namespace until release is called.
func HoldTurn(r *Reviewer, namespace string) (release func()) {
	release, err := r.turns.take(context.Background(), namespace)
	if err != nil {
		panic(err)
	}
	return release
}
