package dataplane_test

import (
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

func TestFirstRequest(t *testing.T) {
	echo := headgatetest.StartEcho(t, "one")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("one") + headgatetest.Endpoints("one", echo)})
	g.Get("a.test", "/").WantStatus(t, 404)
	g.Apply(headgatetest.Ingress("web", "a.test", "/", "one"))
	r := g.Get("a.test", "/x%2Fy//z?q=%20").WantStatus(t, 200)
	if r.Echo == nil || r.Echo.Target != "/x%2Fy//z?q=%20" {
		t.Errorf("the backend saw %+v", r.Echo)
	}
	g.Apply(headgatetest.Ingress("web", "a.test", "/", "one", "proxy-body-size: 3m"))
	g.Get("a.test", "/").WantStatus(t, 200)
	if n := g.Value(g.Metrics.Reloads); n != 1 {
		t.Errorf("%d reloads, want 1 for the new profile", n)
	}
	g.Delete(headgatetest.Ingress("web", "a.test", "/", "one"))
	g.Get("a.test", "/").WantStatus(t, 404)
}
