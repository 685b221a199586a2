package dataplane_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// What a feature counts when a request goes on it takes back when that is over:
// answered by a backend, by none, by Headgate itself, refused by a called service,
// or left by the client. None is over twice.
func TestFeaturesSeeTheEndOfEachRequest(t *testing.T) {
	t.Parallel()
	// What counts needs no header filter; one that shows the count is another
	// feature's, and there on the routes of the Ingress a alone.
	counting := append(all.Features(), feature.Feature{
		Name:  "counting",
		Route: func(_ feature.Values, out *feature.RouteOut) { feature.Add(out.Route, "counting", struct{}{}) },
		Lua: featuretest.Module("counting", `
local _M = { open = 0, twice = 0 }
function _M.request_headers(_, request)
    _M.open = _M.open + 1
    request.counted = true
end
function _M.log(_, request)
    if request.over then
        _M.twice = _M.twice + 1
    end
    request.over = true
    if request.counted then
        _M.open = _M.open - 1
    end
end
return _M`),
	}, feature.Feature{
		Name: "showing",
		Route: func(_ feature.Values, out *feature.RouteOut) {
			if out.Route.Origin.Ingress == "a" {
				feature.Add(out.Route, "showing", struct{}{})
				out.Route.Variant.HeaderFilter = true
			}
		},
		Lua: featuretest.Module("showing", `
local counting = require "headgate.feature.counting"
return {
    header_filter = function()
        ngx.header["X-Open"] = counting.open
        ngx.header["X-Over-Twice"] = counting.twice
    end,
}`),
	})
	arrived := make(chan struct{})
	slow := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	refusing := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Features: counting, Timing: headgatetest.Hasty(), Manifests: served("one", headgatetest.StartEcho(t, "one")) +
		served("slow", slow) + served("dead", "127.0.0.1:1") + headgatetest.Ingress("a", "a.test", "/", "one", "proxy-body-size: 1k") +
		headgatetest.Ingress("b", "a.test", "/slow", "slow") + headgatetest.Ingress("c", "a.test", "/dead", "dead") +
		headgatetest.Ingress("d", "a.test", "/signed", "one", "auth-url: http://"+refusing, "auth-signin: http://sign.in.test")})
	open := func() string {
		a := g.Get("a.test", "/").WantStatus(t, 200)
		if twice := a.Header.Get("X-Over-Twice"); twice != "0" {
			t.Errorf("%s requests were over twice", twice)
		}
		return a.Header.Get("X-Open")
	}
	if n := open(); n != "1" {
		t.Fatalf("the first request sees %q open", n)
	}
	for range 3 {
		g.Get("a.test", "/dead").WantStatus(t, 502)
		g.Get("a.test", "/signed").WantStatus(t, 302)
		g.Do(headgatetest.Request{Host: "a.test", Scheme: "https", HTTP2: true}).WantStatus(t, 200)
		g.Do(headgatetest.Request{Method: "POST", Host: "a.test", Body: strings.NewReader(strings.Repeat("x", 2000))}).WantStatus(t, 413)
		l := &line{port: g.HTTP}
		if err := l.send("GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case <-arrived:
		case <-time.After(headgatetest.Timeout):
			t.Fatal("the backend is not asked")
		}
		if n := open(); n != "2" {
			t.Errorf("beside one that waits a request sees %q open, want 2", n)
		}
		l.close()
		headgatetest.Eventually(t, "the request is over that the client left", func() bool { return open() == "1" })
	}
}
