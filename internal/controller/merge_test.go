package controller_test

import (
	"context"
	"errors"
	"testing"

	"github.com/headgate/headgate/internal/controller"
	"github.com/headgate/headgate/internal/source"
)

// TestMergeSources: all sources deliver, and the failure of one ends all.
func TestMergeSources(t *testing.T) {
	broken := errors.New("broken")
	got := make(chan string, 2)
	deliver := func(_ context.Context, changes []source.Change) { got <- changes[0].Object.GetName() }
	follow := func(name string, end error) controller.Source {
		return func(ctx context.Context, deliver func(context.Context, []source.Change)) error {
			deliver(ctx, []source.Change{{Object: source.NewAddresses(name)}})
			if end == nil {
				<-ctx.Done()
			}
			return end
		}
	}
	if err := controller.MergeSources(follow("a", nil), follow("b", broken))(t.Context(), deliver); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if first, second := <-got, <-got; first == second {
		t.Errorf("delivered were %s and %s", first, second)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-got; <-got; cancel() }()
	if err := controller.MergeSources(follow("a", nil), follow("b", nil))(ctx, deliver); err != nil {
		t.Errorf("the end is an error: %v", err)
	}
}
