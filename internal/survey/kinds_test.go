package survey

import (
	"testing"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/store"
)

// TestKinds: a unit of any kind that the store can name is built.
func TestKinds(t *testing.T) {
	builder := build.New(all.Features(), "nginx.ingress.kubernetes.io")
	v := &Survey{View: store.New(store.Settings{}, builder.Refer), desired: plan.NewDesired()}
	for _, kind := range store.Kinds() {
		func() {
			defer func() {
				if wrong := recover(); wrong != nil {
					t.Errorf("kind %s: %v", kind, wrong)
				}
			}()
			v.build(builder, store.Key{Kind: kind, Name: "nothing"})
		}()
	}
}
