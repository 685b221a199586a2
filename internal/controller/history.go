package controller

import (
	"context"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
)

// deliver takes changes of a source. Of several that arrive at the same time, the history may
// take one for another.
func (c *Controller) deliver(_ context.Context, changes []source.Change) {
	c.settings.History.Arrive(c.queue.Puts() + 1)
	c.queue.Put(changes...)
}

// collect takes the next changes from the queue, with the number of deliveries so far.
func (c *Controller) collect(ctx context.Context) (changes []source.Change, taken int) {
	changes, taken = c.queue.Collect(ctx)
	c.settings.History.Take(taken)
	return changes, taken
}

// nameOf is an object as findings name it.
func nameOf(object metav1.Object) string {
	kind := strings.ToLower(reflect.Indirect(reflect.ValueOf(object)).Type().Name())
	if namespace := object.GetNamespace(); namespace != "" {
		return kind + "/" + namespace + "/" + object.GetName()
	}
	return kind + "/" + object.GetName()
}
