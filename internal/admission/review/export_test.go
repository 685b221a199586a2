package review

import (
	"context"
	"fmt"
	"strings"

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

// Table is the rules as a table of Markdown.
func Table() string {
	var b strings.Builder
	b.WriteString("| code | annotation | `spec` | denies | why |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range rules() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.code, r.annotation, r.spec, r.denies, r.why)
	}
	return b.String()
}
