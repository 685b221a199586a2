package http3_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

const (
	on = "use-http3: true"
	// withUsers is a Secret with the password of one user.
	withUsers = `---
apiVersion: v1
kind: Secret
metadata: {name: users}
stringData: {auth: "user:{PLAIN}pass"}
`
)

// start serves a.test, and reports whether it speaks HTTP/3: an NGINX that can't must say so, and
// serve as if the key was not set.
func start(t *testing.T, manifests string, keys ...string) (g *headgatetest.Instance, speaks bool) {
	t.Helper()
	g = headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Ingress("web", "a.test", "/", "a") +
		headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) + manifests + headgatetest.Config(append(keys, on)...)})
	speaks = g.HTTP3()
	r := g.Do(headgatetest.Request{Scheme: "https", HTTP2: true, Host: "a.test"}).WantStatus(t, 200)
	if announced := r.Header.Get("Alt-Svc") != ""; announced != speaks {
		t.Errorf("Alt-Svc is %q, and NGINX speaks HTTP/3: %v", r.Header.Get("Alt-Svc"), speaks)
	}
	const finding = "this NGINX does not support HTTP/3, which needs NGINX 1.25 or later with its module http_v3"
	if strings.Contains(g.Log.String(), finding) == speaks {
		t.Errorf("NGINX speaks HTTP/3: %v; the log: %s", speaks, g.Log)
	}
	return g, speaks
}

// ask asks a.test over HTTP/3.
func ask(g *headgatetest.Instance, r headgatetest.Request) headgatetest.Response {
	r.HTTP3, r.Scheme = true, "https"
	if r.Host == "" {
		r.Host = "a.test"
	}
	return g.Do(r)
}

// Requests over HTTP/3 are as others: what backends learn, guards, limits, redirects, the log.
func TestRequests(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.log")
	g := headgatetest.Start(t, headgatetest.Options{AccessLog: file, Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) + withUsers +
		headgatetest.Ingress("web", "a.test", "/", "a", "proxy-body-size: 1m", "proxy-request-buffering: off") +
		headgatetest.Ingress("buffered", "b.test", "/", "a") +
		headgatetest.Ingress("guarded", "a.test", "/guarded", "a", "auth-type: basic", "auth-secret: users") +
		headgatetest.Ingress("broken", "a.test", "/broken", "a", "auth-type: basic", "auth-secret: none") +
		headgatetest.Ingress("away", "a.test", "/away", "a", "permanent-redirect: https://c.test/") +
		headgatetest.Ingress("rewritten", "a.test", "/old", "a", "rewrite-target: /new") +
		headgatetest.Config(on, "http3-alt-svc-port: 8443")})
	if !g.HTTP3() {
		if r := g.Get("a.test", "/").WantStatus(t, 200); r.Header.Get("Alt-Svc") != "" {
			t.Errorf("Alt-Svc is %q", r.Header.Get("Alt-Svc"))
		}
		return
	}
	password := http.Header{"Authorization": {"Basic dXNlcjpwYXNz"}}
	for _, c := range []struct {
		request headgatetest.Request
		status  int
		target  string // at the backend, none if it is empty
	}{
		{headgatetest.Request{Path: "/x?y=z"}, 200, "/x?y=z"},
		{headgatetest.Request{Method: "POST", Body: strings.NewReader(strings.Repeat("x", 1<<20))}, 200, "/"},
		{headgatetest.Request{Method: "POST", Body: io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)))}, 200, "/"},
		{headgatetest.Request{Method: "POST", Body: strings.NewReader(strings.Repeat("x", 1<<20+1))}, 413, ""},
		{headgatetest.Request{Host: "b.test", Method: "POST", Body: io.MultiReader(strings.NewReader(strings.Repeat("x", 300<<10)))}, 200, "/"},
		{headgatetest.Request{Path: "/guarded"}, 401, ""},
		{headgatetest.Request{Path: "/guarded", Header: password}, 200, "/guarded"},
		{headgatetest.Request{Path: "/guarded;a=b/x"}, 401, ""},
		{headgatetest.Request{Path: "/x/../guarded"}, 401, ""},
		{headgatetest.Request{Path: "/%67uarded"}, 401, ""},
		{headgatetest.Request{Path: "/broken", Header: password}, 503, ""},
		{headgatetest.Request{Path: "/away"}, 301, ""},
		{headgatetest.Request{Path: "/old"}, 200, "/new"},
		{headgatetest.Request{Host: "unknown.test"}, 404, ""},
	} {
		r := ask(g, c.request)
		name := c.request.Method + " " + c.request.Host + c.request.Path
		if r.Status != c.status || r.Proto != "HTTP/3.0" || (r.Echo != nil) != (c.target != "") {
			t.Errorf("%s: %s %d, want %d; backend %v", name, r.Proto, r.Status, c.status, r.Echo)
			continue
		}
		if got := r.Header.Values("Alt-Svc"); len(got) != 1 || got[0] != `h3=":8443"; ma=86400` {
			t.Errorf("%s: Alt-Svc is %q", name, got)
		}
		if r.Echo == nil {
			continue
		}
		h := r.Echo.Header
		if r.Echo.Target != c.target || r.Echo.Host != cmp.Or(c.request.Host, "a.test") || h.Get("X-Forwarded-Proto") != "https" || h.Get("X-Forwarded-Port") != "443" ||
			h.Get("X-Real-Ip") != "127.0.0.1" || h.Get("Connection") != "" {
			t.Errorf("%s: the backend saw %s, %s, %v", name, r.Echo.Target, r.Echo.Host, h)
		}
	}
	if r := g.Get("b.test", "/").WantStatus(t, 200); r.Header.Get("Alt-Svc") != "" {
		t.Errorf("over http, Alt-Svc is %q", r.Header.Get("Alt-Svc"))
	}
	headgatetest.Eventually(t, "the log has the protocol", func() bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), `"GET /x?y=z HTTP/3.0" 200`)
	})
}

// What a backend says about itself is not for Headgate's clients.
func TestAltSvcOfBackends(t *testing.T) {
	t.Parallel()
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Alt-Svc", `h3=":1"`) }))
	g, speaks := start(t, headgatetest.Service("own")+headgatetest.Endpoints("own", backend)+headgatetest.Ingress("own", "own.test", "/", "own"))
	got := g.Do(headgatetest.Request{Scheme: "https", Host: "own.test"}).WantStatus(t, 200).Header.Values("Alt-Svc")
	want := map[bool]string{true: `[h3=":443"; ma=86400]`, false: `[h3=":1"]`}[speaks]
	if fmt.Sprint(got) != want {
		t.Errorf("Alt-Svc is %q, want %s", got, want)
	}
}

// Hundreds of requests at once share a connection, with bodies that take many packets.
func TestStreams(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("0123456789abcdef", 64<<10)
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			io.WriteString(w, body)
			return
		}
		sent, err := io.ReadAll(r.Body)
		if err == nil {
			w.Write(sent)
		}
	}))
	g, speaks := start(t, headgatetest.Service("b")+headgatetest.Endpoints("b", backend)+headgatetest.Ingress("b", "b.test", "/", "b"))
	if !speaks {
		return
	}
	var connections atomic.Int32
	client := g.NewHTTP3Client()
	client.Transport = g.NewHTTP3Transport(func(*quic.Conn) { connections.Add(1) }, &tls.Config{InsecureSkipVerify: true})
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			r, want := headgatetest.Request{Scheme: "https", Host: "b.test", Path: "/large"}, body
			if i%20 != 0 {
				want = strings.Repeat(fmt.Sprint(i), 10_000)
				r.Path, r.Method, r.Body = "/", "POST", strings.NewReader(want)
			}
			if got, err := g.Try(client, r); err != nil || got.Status != 200 || got.Body != want {
				t.Errorf("request %d: %v, %d, %d bytes", i, err, got.Status, len(got.Body))
			}
		})
	}
	all.Wait()
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// A certificate that is replaced fails no request, and new connections show the new one.
func TestCertificates(t *testing.T) {
	t.Parallel()
	first, second := headgatetest.NewKeyPair(t, "first", "b.test"), headgatetest.NewKeyPair(t, "second", "b.test")
	g, speaks := start(t, headgatetest.TLSSecret("tls", first)+headgatetest.WithTLS(headgatetest.Ingress("b", "b.test", "/", "a"), "tls b.test"))
	if !speaks {
		return
	}
	shown := func() string {
		r := ask(g, headgatetest.Request{Host: "b.test"}).WantStatus(t, 200)
		return r.TLS.PeerCertificates[0].Subject.CommonName
	}
	ctx, stop := context.WithCancel(t.Context())
	var asked atomic.Int32
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			kept := g.NewHTTP3Client()
			defer kept.CloseIdleConnections()
			for ctx.Err() == nil {
				client := kept
				if i%2 == 1 {
					client = g.NewHTTP3Client()
				}
				if r, err := g.Try(client, headgatetest.Request{Scheme: "https", Host: "b.test"}); err != nil || r.Status != 200 {
					t.Errorf("a request under change: %d, %v", r.Status, err)
					return
				}
				if client != kept {
					client.CloseIdleConnections()
				}
				asked.Add(1)
			}
		})
	}
	for i := range 10 {
		pair, want := second, "second"
		if i%2 == 1 {
			pair, want = first, "first"
		}
		g.Apply(headgatetest.TLSSecret("tls", pair))
		if got := shown(); got != want {
			t.Errorf("change %d: the certificate of %s, want that of %s", i, got, want)
		}
	}
	headgatetest.Eventually(t, "enough requests", func() bool { return asked.Load() > 100 || t.Failed() })
	stop()
	clients.Wait()
}

// A reload ends connections. Their clients learn of it at once, and connect to the new workers.
func TestReload(t *testing.T) {
	t.Parallel()
	g, speaks := start(t, "")
	if !speaks {
		return
	}
	client := g.NewHTTP3Client()
	defer client.CloseIdleConnections()
	again := func() error {
		r, err := g.Try(client, headgatetest.Request{Scheme: "https", Host: "a.test"})
		if err == nil && r.Status != 200 {
			err = fmt.Errorf("status %d", r.Status)
		}
		return err
	}
	if err := again(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		g.ApplyReloading(headgatetest.Config(on, fmt.Sprintf("keep-alive: %d", 60+i)))
		// The old workers may take some time to stop reading. Without tokens that the new ones
		// share, each of these would take as long as the client waits.
		begun := time.Now()
		headgatetest.Eventually(t, "the client is served again", func() bool { return again() == nil })
		if took := time.Since(begun); took > headgatetest.Timeout/2 {
			t.Errorf("the client was served again after %v", took)
		}
	}
	for _, c := range [][2]string{{"http3-alt-svc-port: 8443", `h3=":8443"; ma=86400`}, {"use-http3: false", ""}, {on, `h3=":443"; ma=86400`}} {
		keys := []string{c[0]}
		if strings.HasPrefix(c[0], "http3") {
			keys = append(keys, on)
		}
		g.ApplyReloading(headgatetest.Config(keys...))
		if r := g.Do(headgatetest.Request{Scheme: "https", Host: "a.test"}).WantStatus(t, 200); r.Header.Get("Alt-Svc") != c[1] {
			t.Errorf("%s: Alt-Svc is %q, want %q", c[0], r.Header.Get("Alt-Svc"), c[1])
		}
	}
	headgatetest.Eventually(t, "the client is served after HTTP/3 was off", func() bool { return again() == nil })
}

// Before NGINX ends, each answer over HTTP/3 asks its client to use another version. No request that is under way is lost.
func TestLeave(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}, 1), make(chan struct{})
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			arrived <- struct{}{}
			<-release
		}
	}))
	g, speaks := start(t, headgatetest.Service("b")+headgatetest.Endpoints("b", backend)+headgatetest.Ingress("b", "b.test", "/", "b")+
		headgatetest.Ingress("moved", "b.test", "/moved", "b", "permanent-redirect: http://x.test/"), "block-user-agents: robot")
	if !speaks {
		return
	}
	const offer = `h3=":443"; ma=86400`
	client := g.NewHTTP3Client()
	defer client.CloseIdleConnections()
	get := func(path string, status int, altSvc, agent string) {
		r, err := g.Try(client, headgatetest.Request{Scheme: "https", Host: "b.test", Path: path, Header: http.Header{"User-Agent": {agent}}})
		if err != nil || r.Status != status || r.Header.Get("Alt-Svc") != altSvc {
			t.Errorf("%s: %v, status %d, Alt-Svc: %s; want %d and %s", path, err, r.Status, r.Header.Get("Alt-Svc"), status, altSvc)
		}
	}
	get("/", http.StatusOK, offer, "person")
	var slow sync.WaitGroup
	slow.Go(func() { get("/slow", http.StatusOK, offer, "person") })
	<-arrived
	// Sixteen requests at a time, before and after.
	all := func(altSvc string) {
		var quick sync.WaitGroup
		for range 16 {
			quick.Go(func() {
				for range 10 {
					get("/", http.StatusOK, altSvc, "person")
				}
			})
		}
		quick.Wait()
	}
	all(offer)
	g.Leave()
	all("clear")
	get("/moved", http.StatusMovedPermanently, "clear", "person")
	get("/", http.StatusForbidden, "clear", "robot")
	// Who asks over another version does not lose the way to HTTP/3 of other pods.
	if r := g.Do(headgatetest.Request{Scheme: "https", Host: "b.test"}).WantStatus(t, http.StatusOK); r.Header.Get("Alt-Svc") != offer {
		t.Errorf("not over HTTP/3, Alt-Svc: %s; want %s", r.Header.Get("Alt-Svc"), offer)
	}
	close(release)
	slow.Wait()
}

// Debian's OpenSSL takes no early data over QUIC, with ssl-early-data or without.
func TestEarlyData(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"ssl-early-data: false", "ssl-early-data: true"} {
		g, speaks := start(t, "", key, "ssl-session-tickets: true")
		if !speaks {
			return
		}
		config := &tls.Config{InsecureSkipVerify: true, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
		for range 3 {
			var connection *quic.Conn
			client := g.NewHTTP3Client()
			client.Transport = g.NewHTTP3Transport(func(c *quic.Conn) { connection = c }, config)
			r, err := g.Try(client, headgatetest.Request{Method: "GET_0RTT", Scheme: "https", Host: "a.test"})
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != 200 || connection.ConnectionState().Used0RTT {
				t.Errorf("%s: status %d, early data %v", key, r.Status, connection.ConnectionState().Used0RTT)
			}
			client.CloseIdleConnections()
		}
	}
}

// What HTTP/3 can't be combined with turns it off, with a reason.
func TestConflicts(t *testing.T) {
	t.Parallel()
	for key, reason := range map[string]string{
		"use-proxy-protocol: true": "QUIC has no header of the PROXY protocol, so use-proxy-protocol must be false",
		"ssl-protocols: TLSv1.2":   "HTTP/3 needs TLSv1.3, which ssl-protocols lacks",
	} {
		g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Config(on, key)})
		if strings.Contains(g.Log.String(), reason) != g.HTTP3() {
			t.Errorf("%s: the log has not %q: %s", key, reason, g.Log)
		}
	}
}
