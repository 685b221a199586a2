package controller

import (
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/source"
)

// An arrival is a change that units were built for, and that is not applied yet.
type arrival struct {
	kind string
	at   time.Time
}

// maxArrivals bounds what is remembered if nothing can be applied.
const maxArrivals = 10000

// noteArrival notes a change that affects units. What the first load waits for is a part of it.
func (c *Controller) noteArrival(change source.Change) {
	if !c.started {
		return
	}
	if c.settings.History != nil {
		c.settings.History.Change(c.taken, change.Arrived, nameOf(change.Object), change.Deleted)
	}
	if len(c.arrivals) < maxArrivals {
		c.arrivals = append(c.arrivals, arrival{reflect.TypeOf(change.Object).Elem().Name(), change.Arrived})
	}
}

// noteApplied observes how long changes took that are applied now.
func (c *Controller) noteApplied() {
	c.settings.History.Apply(c.taken)
	now := time.Now()
	for _, a := range c.arrivals {
		c.metrics.Propagation.WithLabelValues(a.kind).Observe(now.Sub(a.at).Seconds())
	}
	c.arrivals = nil
}

// nameOf is an object as findings name it.
func nameOf(object metav1.Object) string {
	kind := strings.ToLower(reflect.Indirect(reflect.ValueOf(object)).Type().Name())
	if namespace := object.GetNamespace(); namespace != "" {
		return kind + "/" + namespace + "/" + object.GetName()
	}
	return kind + "/" + object.GetName()
}
