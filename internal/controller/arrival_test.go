package controller

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/observe/history"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/source"
)

// TestArrivals: the history and the metric follow changes from their arrival on, but nothing of
// the first load, before NGINX runs.
func TestArrivals(t *testing.T) {
	c := &Controller{settings: Settings{Settings: edge.Settings{History: history.New()}}, metrics: metrics.New()}
	change := source.Change{
		Object:  &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}},
		Arrived: time.Now().Add(-time.Minute),
	}
	c.noteArrival(change)
	if len(c.arrivals) > 0 || len(c.settings.History.Events()) > 0 {
		t.Error("the first load counts")
	}
	c.started = true
	c.noteArrival(change)
	if len(c.arrivals) != 1 {
		t.Errorf("%d arrivals", len(c.arrivals))
	}
	c.noteApplied()
	e := c.settings.History.Events()[0]
	if !e.At.Equal(change.Arrived) || e.Took == nil || *e.Took < 60 || e.Objects[0].Object != "ingress/default/web" || len(c.arrivals) > 0 {
		t.Errorf("%+v, %d arrivals", e, len(c.arrivals))
	}
}
