package dataplane_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// Finding B1: what a backend may take for a guarded path is not let through under
// another one. "/admin" is guarded, "/" is open.
func TestPathsThatBackendsReadOtherwise(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("one", headgatetest.StartEcho(t, "one")) + usersSecret +
		headgatetest.Ingress("open", "a.test", "/", "one") + headgatetest.Ingress("deep", "a.test", "/shop/cart", "one") +
		headgatetest.Ingress("guarded", "a.test", "/admin", "one", "auth-type: basic", "auth-secret: users") +
		headgatetest.Ingress("unguarded", "b.test", "/", "one") + headgatetest.Ingress("unguarded-admin", "b.test", "/admin", "one") +
		headgatetest.Ingress("all", "c.test", "/", "one", "auth-type: basic", "auth-secret: users") +
		headgatetest.Ingress("pattern", "d.test", "/admin/.*", "one", "use-regex: true", "auth-type: basic", "auth-secret: users") +
		headgatetest.Ingress("pattern-open", "d.test", "/.*", "one", "use-regex: true"),
	})
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		for _, c := range []struct {
			host, path string
			status     int
		}{
			{"a.test", "/admin/x", 401},
			{"a.test", "/x", 200},
			{"a.test", "/admin;a=b/x", 400},
			{"a.test", "/admin;/x", 400},
			{"a.test", "/;/admin/x", 400},
			{"a.test", "/;a=b/admin", 400},
			{"a.test", "/;a=b/;c/admin;d/x", 400},
			{"a.test", "/%3b/admin", 400},
			{"a.test", `/\admin`, 400},
			{"a.test", `/admin\x`, 400},
			{"a.test", "/%5cadmin%5cx", 400},
			{"a.test", `/;a\admin`, 400},
			{"a.test", "/x;a=b/y", 200},
			{"a.test", `/x\y`, 200},
			{"a.test", "/shop;a=b/cart;c=d", 200},
			{"a.test", "/x?a=;/admin", 200},
			{"a.test", "/admin/x;a=b", 401},
			{"b.test", "/admin;a=b/x", 200},
			{"c.test", "/admin;a=b/x", 401},
			{"d.test", "/admin/x", 401},
			{"d.test", "/admin;a=b/x", 400},
			{"d.test", "/x;a=b", 200},
		} {
			r := g.Do(headgatetest.Request{Host: c.host, Path: c.path, Scheme: scheme, HTTP2: http2})
			if r.Status != c.status || (r.Echo != nil) != (c.status == 200) {
				t.Errorf("%s %s%s: %d, want %d; backend %v", r.Proto, c.host, c.path, r.Status, c.status, r.Echo != nil)
			}
		}
	})
}

// upgraded asks for an Upgrade and says what the backend got, and the status.
func upgraded(t *testing.T, g *headgatetest.Instance, header string) (got string, status int) {
	t.Helper()
	connection := headgatetest.Dial(t, g.HTTP)
	defer connection.Close()
	fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", header)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatal(err)
	}
	return response.Header.Get("Got"), response.StatusCode
}

// Finding B4: a backend is asked to change the protocol only to one that is allowed.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	// It takes any offer.
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		offer := r.Header.Get("Upgrade")
		w.Header().Set("Got", offer+" "+r.Header.Get("Connection"))
		if offer != "" {
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Upgrade", offer)
			w.WriteHeader(http.StatusSwitchingProtocols)
		}
	}))
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("one", backend) + headgatetest.Ingress("a", "a.test", "/", "one")})
	check := func(allowed ...string) {
		t.Helper()
		for _, header := range []string{"websocket", "WebSocket", "h2c", "SPDY/3.1", "tcp", "websocket, h2c", "TLS/1.0", "default"} {
			got, status := upgraded(t, g, header)
			passes := false
			for _, a := range allowed {
				passes = passes || strings.EqualFold(a, header)
			}
			if want := map[bool]string{true: header + " upgrade", false: ""}[passes]; got != want || (status == 101) != passes {
				t.Errorf("Upgrade: %s: the backend got %q, status %d; allowed: %v", header, got, status, allowed)
			}
		}
	}
	check("websocket")
	g.Apply(headgatetest.Config("upgrade-protocols: websocket,SPDY/3.1"))
	check("websocket", "SPDY/3.1")
	g.Apply(headgatetest.Config("upgrade-protocols: websocket,h2c"))
	check("websocket")
	g.Apply(headgatetest.Config("upgrade-protocols: TCP"))
	check("tcp")
}

// Finding B5: a backend learns that a request may be a replay, and one that may change
// something does not pass a guard.
func TestEarlyData(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("one", headgatetest.StartEcho(t, "one")) + usersSecret +
		headgatetest.Config("ssl-early-data: true", "ssl-session-tickets: true") + headgatetest.Ingress("open", "open.test", "/", "one") +
		headgatetest.Ingress("guarded", "guarded.test", "/", "one", "auth-type: basic", "auth-secret: users"),
	})
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		for _, c := range []struct {
			method, host, early string
			status              int
		}{
			{"GET", "open.test", "1", 200}, {"POST", "open.test", "1", 200}, {"GET", "open.test", "", 200},
			{"GET", "guarded.test", "1", 200}, {"POST", "guarded.test", "1", 425}, {"DELETE", "guarded.test", "1", 425}, {"POST", "guarded.test", "", 200},
		} {
			header := password.Clone()
			if c.early != "" {
				header.Set("Early-Data", c.early)
			}
			r := g.Do(headgatetest.Request{Method: c.method, Host: c.host, Scheme: scheme, HTTP2: http2, Header: header})
			if r.Status != c.status {
				t.Errorf("%s %s %s, Early-Data %q: %d, want %d", r.Proto, c.method, c.host, c.early, r.Status, c.status)
			}
			if r.Echo != nil && r.Echo.Header.Get("Early-Data") != c.early {
				t.Errorf("%s %s %s: the backend got Early-Data %q", r.Proto, c.method, c.host, r.Echo.Header.Get("Early-Data"))
			}
		}
	})
}
