package dataplane_test

import (
	"testing"

	"github.com/headgate/headgate/internal/gatetest"
)

func TestFirstRequest(t *testing.T) {
	echo := gatetest.StartEcho(t, "one")
	g := gatetest.Start(t, gatetest.Options{Manifests: gatetest.Service("one") + gatetest.Endpoints("one", echo)})
	g.Get("a.test", "/").WantStatus(t, 404)
	g.Apply(gatetest.Ingress("web", "a.test", "/", "one"))
	r := g.Get("a.test", "/x%2Fy//z?q=%20").WantStatus(t, 200)
	if r.Echo == nil || r.Echo.Target != "/x%2Fy//z?q=%20" {
		t.Errorf("the backend saw %+v", r.Echo)
	}
	g.Apply(gatetest.Ingress("web", "a.test", "/", "one", "proxy-body-size: 3m"))
	g.Get("a.test", "/").WantStatus(t, 200)
	if n := g.Value(g.Metrics.Reloads); n != 1 {
		t.Errorf("%d reloads, want 1 for the new profile", n)
	}
	g.Delete(gatetest.Ingress("web", "a.test", "/", "one"))
	g.Get("a.test", "/").WantStatus(t, 404)
}
