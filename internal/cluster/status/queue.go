package status

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// A queue has the names of Ingresses to check. Those that failed come back later.
type queue = workqueue.TypedRateLimitingInterface[types.NamespacedName]

// beginQueue replaces the queue by an empty one, which ends with ctx.
func (w *Writer) beginQueue(ctx context.Context) queue {
	failures := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstPause, longestPause)
	ordered := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[types.NamespacedName]{Queue: &order{failures: failures}})
	now := workqueue.NewTypedRateLimitingQueueWithConfig(failures, workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Queue: ordered}),
	})
	context.AfterFunc(ctx, now.ShutDown)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = now
	return now
}

// An order has the newest name first, so that new Ingresses do not wait for
// updates of all old ones, and those that failed last.
type order struct {
	failures      workqueue.TypedRateLimiter[types.NamespacedName]
	fresh, failed []types.NamespacedName
}

// Touch does nothing: a name keeps its place.
func (o *order) Touch(types.NamespacedName) {}

// Len is the number of names.
func (o *order) Len() int { return len(o.fresh) + len(o.failed) }

// Push adds a name.
func (o *order) Push(name types.NamespacedName) {
	if o.failures.NumRequeues(name) > 0 {
		o.failed = append(o.failed, name)
	} else {
		o.fresh = append(o.fresh, name)
	}
}

// Pop takes the first name.
func (o *order) Pop() (name types.NamespacedName) {
	if last := len(o.fresh) - 1; last >= 0 {
		name, o.fresh = o.fresh[last], o.fresh[:last]
	} else {
		name, o.failed = o.failed[0], o.failed[1:]
	}
	return name
}
