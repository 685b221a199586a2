package requestheaders_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// next waits for a copy.
func next(t *testing.T, copies <-chan http.Header) http.Header {
	t.Helper()
	select {
	case h := <-copies:
		return h
	case <-time.After(headgatetest.Timeout):
		t.Fatal("the mirror gets nothing")
		return nil
	}
}

var madeID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// TestRequestHeaders: each key changes the next request, with and without a shortcut, to backends,
// auth services and mirrors.
func TestRequestHeaders(t *testing.T) {
	t.Parallel()
	copies := make(chan http.Header, 100)
	mirror := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { copies <- r.Header }))
	auth := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Saw", "id="+r.Header.Get("X-Request-Id"))
	}))
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("echo") + headgatetest.Endpoints("echo", headgatetest.StartEcho(t, "echo")) +
		headgatetest.Service("dead") + headgatetest.Endpoints("dead", "127.0.0.1:1") +
		headgatetest.Ingress("plain", "a.test", "/", "echo") +
		headgatetest.Ingress("rewritten", "b.test", "/app/(.*)", "echo", "rewrite-target: /$1", "auth-url: http://"+auth+"/", "auth-response-headers: X-Saw") +
		headgatetest.Ingress("copied", "c.test", "/", "echo", "mirror-target: http://"+mirror+"/copy")})
	header := func(host, path string, sent http.Header, http2 bool) http.Header {
		t.Helper()
		r := headgatetest.Request{Host: host, Path: path, Header: sent, HTTP2: http2}
		if http2 {
			r.Scheme = "https"
		}
		return g.Do(r).WantStatus(t, 200).Echo.Header
	}
	forged := http.Header{"X-Request-Id": {"mine"}, "X-Original-Uri": {"/forged"}}
	check := func(keys string, id, uri bool) {
		t.Helper()
		for _, http2 := range []bool{false, true} {
			for host, path := range map[string]string{"a.test": "/app/x?y=%20", "b.test": "/app/x?y=%20", "c.test": "/app/x?y=%20"} {
				made, kept := header(host, path, nil, http2), header(host, path, forged, http2)
				seen := map[string][]http.Header{"backend": {made, kept}}
				if host == "c.test" {
					one, two := next(t, copies), next(t, copies)
					if one.Get("X-Request-Id") == "mine" {
						one, two = two, one
					}
					seen["mirror"] = []http.Header{one, two}
				}
				for who, h := range seen {
					if got := h[0].Get("X-Request-Id"); madeID.MatchString(got) != id || !id && len(h[0].Values("X-Request-Id")) != 0 {
						t.Errorf("%s, %s, HTTP/2 %v: the %s got the ID %q", keys, host, http2, who, got)
					}
					if got := h[1].Values("X-Request-Id"); len(got) != 1 || got[0] != "mine" {
						t.Errorf("%s, %s, HTTP/2 %v: the %s got the IDs %q instead of the client's", keys, host, http2, who, got)
					}
					want := map[bool][]string{false: {"", "/forged"}, true: {path, path}}[uri]
					for i := range want {
						if got := strings.Join(h[i].Values("X-Original-Uri"), " "); got != want[i] {
							t.Errorf("%s, %s, HTTP/2 %v: the %s got X-Original-URI %q, want %q", keys, host, http2, who, got, want[i])
						}
					}
				}
				if got, want := made.Get("X-Saw"), "id="+made.Get("X-Request-Id"); host == "b.test" && got != want {
					t.Errorf("%s: the auth service saw %q, want %q", keys, got, want)
				}
			}
		}
	}
	check("no keys", true, false)
	for _, c := range []struct {
		keys    []string
		id, uri bool
	}{
		{[]string{"generate-request-id: false"}, false, false},
		{[]string{"generate-request-id: false", "proxy-add-original-uri-header: true"}, false, true},
		{[]string{"proxy-add-original-uri-header: true"}, true, true},
		{nil, true, false},
	} {
		g.Apply(headgatetest.Config(c.keys...))
		check(strings.Join(c.keys, ", "), c.id, c.uri)
	}
}
