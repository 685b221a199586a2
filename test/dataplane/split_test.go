package dataplane_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/publish"
	unitwire "github.com/headgate/headgate/internal/unit/wire"
)

// An edge closes a host that it does not understand, since something in it may be a guard, and serves the
// others; and it goes on where it can read the next version.
func TestEdgeClosesWhatItCannotRead(t *testing.T) {
	t.Setenv("HEADGATE_SPLIT", "1")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("one", headgatetest.StartEcho(t, "one")) +
		headgatetest.Ingress("a", "a.test", "/", "one") + headgatetest.Ingress("b", "b.test", "/", "one")})
	g.Get("a.test", "/").WantStatus(t, 200)
	put := func(text string) {
		key := unit.Host.Key("a.test")
		g.Published().Put(publish.Change{Key: key, Namespace: "default", Resources: []unitwire.Resource{{Key: key, Version: text, Bytes: []byte(text)}}})
		g.WaitSynced()
	}
	put(`{"Model":{"Name":"a.test","Namespace":"default","Routes":[],"Guard":{"Of":"a newer control"}}}`)
	g.Get("a.test", "/").WantStatus(t, 503)
	g.Get("b.test", "/").WantStatus(t, 200)
	if !strings.Contains(g.Log.String(), "this edge does not understand what the control has") {
		t.Error("there is no finding")
	}
	put(`{"Model":{"Name":"a.test","Namespace":"default","Routes":[]}}`)
	g.Get("a.test", "/").WantStatus(t, 404)
	// What the control builds next is served.
	g.Apply(headgatetest.Ingress("a", "a.test", "/a", "one"))
	g.Get("a.test", "/a").WantStatus(t, 200)
}
