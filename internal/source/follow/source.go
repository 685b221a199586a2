package follow

import (
	"context"
	"log/slog"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
)

// A Source is a Follower that delivers what its jobs fetch.
type Source[Name comparable] struct {
	*Follower[Name]
	queue *source.Queue
}

// NewSource makes a Source. Name is for log lines.
func NewSource[Name comparable](name string, slots Slots, log *slog.Logger) Source[Name] {
	queue := source.NewQueue()
	changed := func(object metav1.Object, deleted bool) { queue.Put(source.Change{Object: object, Deleted: deleted}) }
	return Source[Name]{New[Name](Settings{Name: name, Slots: slots, Queue: queue, Changed: changed, Log: log}), queue}
}

// Run fetches and delivers until ctx ends. It delivers nothing without a
// subscription.
func (s Source[Name]) Run(ctx context.Context, deliver func(context.Context, []source.Change)) error {
	var group sync.WaitGroup
	group.Go(func() { s.Follower.Run(ctx) })
	s.queue.Run(ctx, deliver, false)
	group.Wait()
	return nil
}
