package mirror_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A service is a mirror, which notes the copies that it gets.
type service struct {
	t      *testing.T
	at     string
	copies chan seen
}

// seen is what a mirror saw of a copy.
type seen struct {
	*http.Request
	length     int64
	sum        string
	serverName string
}

func startMirror(t *testing.T) *service {
	s := &service{t: t, copies: make(chan seen, 1000)}
	s.at = headgatetest.StartBackend(t, s)
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sum := sha256.New()
	n, err := io.Copy(sum, r.Body)
	if err != nil {
		s.t.Errorf("the body of a copy: %v", err)
		return
	}
	one := seen{Request: r.Clone(r.Context()), length: n, sum: hex.EncodeToString(sum.Sum(nil))}
	if r.TLS != nil {
		one.serverName = r.TLS.ServerName
	}
	s.copies <- one
	// No client sees this.
	w.WriteHeader(http.StatusTeapot)
}

// next waits for a copy.
func (s *service) next() seen {
	s.t.Helper()
	headgatetest.Eventually(s.t, "a copy", func() bool { return len(s.copies) > 0 })
	return <-s.copies
}

// wantNone fails the test if there are copies of what was asked before: a request that is
// copied comes last.
func (s *service) wantNone(g *headgatetest.Instance, copied headgatetest.Request) {
	s.t.Helper()
	copied.Header = http.Header{"X-Last": {"1"}}
	g.Do(copied).WantStatus(s.t, 200)
	if one := s.next(); one.Header.Get("X-Last") == "" {
		s.t.Errorf("a copy of %s %s %v", one.Method, one.RequestURI, one.Header)
	}
}

func app(t *testing.T) string {
	t.Helper()
	return headgatetest.Service("app") + headgatetest.Endpoints("app", headgatetest.StartEcho(t, "app"))
}

func mirrored(host, target string, annotations ...string) string {
	name, _, _ := strings.Cut(host, ".")
	return headgatetest.Ingress(name, host, "/", "app", append([]string{"mirror-target: " + target}, annotations...)...)
}

// Copies have the method, the body and the headers that the backend gets.
func TestCopies(t *testing.T) {
	t.Parallel()
	s := startMirror(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) +
		mirrored("a.test", "http://"+s.at+"$request_uri", "proxy-body-size: 0") +
		mirrored("streamed.test", "http://"+s.at, "proxy-body-size: 0", "proxy-request-buffering: off") +
		mirrored("limited.test", "http://"+s.at, "proxy-body-size: 15m", "proxy-request-buffering: off") +
		mirrored("bare.test", "http://"+s.at+"/bare", "mirror-request-body: off")})
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		for _, host := range []string{"a.test", "streamed.test", "limited.test"} {
			for _, size := range []int{0, 1, 5000, 70_000, 10 << 20} {
				body := bytes.Repeat([]byte("0123456789abcde\n"), size/16+1)[:size]
				sum := sha256.Sum256(body)
				for _, chunked := range []bool{false, true} {
					r := headgatetest.Request{
						Method: "POST", Host: host, Path: "/x%20y?a=b%26", HTTP2: http2, Scheme: scheme, Body: bytes.NewReader(body),
						Header: http.Header{"X-Two": {"one", "two"}, "X-Forwarded-For": {"10.1.1.1"}, "X-Request-Id": {fmt.Sprint(size)}, "X-Headgate-Other": {""}},
					}
					if chunked {
						r.Body = io.MultiReader(r.Body)
					}
					what := fmt.Sprintf("%s, %d bytes, chunked %v, HTTP/2 %v", host, size, chunked, http2)
					e := g.Do(r).WantStatus(t, 200).Echo
					c := s.next()
					if c.Method != "POST" || c.RequestURI != "/x%20y?a=b%26" || c.Host != "127.0.0.1" || !slices.Equal(c.Header["X-Two"], []string{"one", "two"}) {
						t.Errorf("%s: %s %s %s %v", what, c.Method, c.RequestURI, c.Host, c.Header)
					}
					if c.length != int64(size) || c.sum != hex.EncodeToString(sum[:]) || e.BodyLength != int64(size) || e.BodySum != c.sum {
						t.Errorf("%s: the copy has %d bytes, the backend got %d", what, c.length, e.BodyLength)
					}
					for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Real-Ip", "X-Request-Id", "X-Original-Forwarded-For", "X-Scheme", "User-Agent", "Cookie"} {
						if !slices.Equal(c.Header[name], e.Header[name]) {
							t.Errorf("%s: %s is %q, the backend got %q", what, name, c.Header[name], e.Header[name])
						}
					}
				}
			}
		}
		g.Do(headgatetest.Request{Method: "POST", Host: "bare.test", HTTP2: http2, Scheme: scheme, Body: strings.NewReader("hello")}).WantStatus(t, 200)
		if c := s.next(); c.Method != "POST" || c.RequestURI != "/bare" || c.length != 0 || c.ContentLength != 0 {
			t.Errorf("without a body: %s %s, %d bytes", c.Method, c.RequestURI, c.ContentLength)
		}
	})
}

func TestTargets(t *testing.T) {
	t.Parallel()
	s := startMirror(t)
	_, port, err := net.SplitHostPort(s.at)
	if err != nil {
		t.Fatal(err)
	}
	secure := httptest.NewUnstartedServer(s)
	secure.EnableHTTP2 = false
	secure.StartTLS()
	t.Cleanup(secure.Close)
	manifests := app(t) + headgatetest.Service("copies") + headgatetest.Endpoints("copies", s.at) +
		"---\nkind: Service\napiVersion: v1\nmetadata: {name: secure}\nspec: {ports: [{name: https, port: 443}]}\n" +
		strings.ReplaceAll(headgatetest.Endpoints("secure", secure.Listener.Addr().String()), "name: http,", "name: https,") +
		mirrored("service.test", "http://copies.default.svc/copy?of=$request_uri&id=$arg_id&h=$http_x_h") +
		mirrored("host.test", "http://"+s.at+"/", "mirror-host: copy.example:81") +
		mirrored("variable.test", "http://"+s.at+"/", "mirror-host: $arg_host") +
		mirrored("below.test", "http://127.0.0.1:"+port+"/below$uri") +
		mirrored("secure.test", "https://secure.default.svc/copy") +
		mirrored("vhost.test", "http://"+s.at+"/", "upstream-vhost: other.example")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	for _, c := range []struct{ host, path, uri, wantHost, serverName string }{
		{"service.test", "/x?id=%20%0d%0a%23", "/copy?of=/x?id=%20%0d%0a%23&id=%20%0d%0a%23&h=a%20b%26c", "copies.default.svc", ""},
		{"host.test", "/x", "/", "copy.example:81", ""},
		{"variable.test", "/?host=a.example", "/?host=a.example", "a.example", ""},
		{"variable.test", "/?host=a%20b", "/?host=a%20b", "127.0.0.1", ""},
		{"variable.test", "/", "/", "127.0.0.1", ""},
		{"below.test", "/a%20b?c", "/below/a%20b", "127.0.0.1", ""},
		{"secure.test", "/x?y=%20&z", "/copy?y=%20&z", "secure.default.svc", "secure.default.svc"},
		{"vhost.test", "/x", "/", "127.0.0.1", ""},
	} {
		g.Do(headgatetest.Request{Host: c.host, Path: c.path, Header: http.Header{"X-H": {"a b&c"}}}).WantStatus(t, 200)
		if got := s.next(); got.RequestURI != c.uri || got.Host != c.wantHost || got.serverName != c.serverName {
			t.Errorf("%s%s: the copy is for %s at %s, by SNI %q", c.host, c.path, got.RequestURI, got.Host, got.serverName)
		}
	}
	// What a mirror may read as another path than the one below its target.
	g.Get("below.test", "/%2e%2e%2fadmin")
	s.wantNone(g, headgatetest.Request{Host: "below.test"})
}

// What is refused is not copied, and passwords are.
func TestRefusedRequestsAreNotCopied(t *testing.T) {
	t.Parallel()
	s := startMirror(t)
	auth := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-User", "alice")
		if r.Header.Get("Cookie") == "" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	target := "http://" + s.at
	users := "---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: \"user:{PLAIN}secret\"}\n"
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) + users +
		mirrored("open.test", target) +
		mirrored("password.test", target, "auth-type: basic", "auth-secret: users") +
		mirrored("service.test", target, "auth-url: http://"+auth+"/", "auth-response-headers: X-User") +
		mirrored("both.test", target, "auth-url: http://"+auth+"/", "auth-type: basic", "auth-secret: users") +
		mirrored("small.test", target, "proxy-body-size: 10") +
		mirrored("redirect.test", target, "force-ssl-redirect: true") +
		mirrored("denied.test", target, "auth-type: basic", "auth-secret: missing") +
		headgatetest.Ingress("dead", "dead.test", "/", "nothing", "mirror-target: "+target)})
	open := headgatetest.Request{Host: "open.test"}
	for host, status := range map[string]int{"password.test": 401, "service.test": 403, "both.test": 401, "redirect.test": 308, "denied.test": 503, "dead.test": 503, "none.test": 404} {
		g.Get(host, "/x").WantStatus(t, status)
	}
	for _, chunked := range []bool{false, true} {
		var body io.Reader = strings.NewReader("more than ten bytes")
		if chunked {
			body = io.MultiReader(body)
		}
		g.Do(headgatetest.Request{Method: "POST", Host: "small.test", Body: body}).WantStatus(t, 413)
	}
	s.wantNone(g, open)
	password := http.Header{"Authorization": {"Basic dXNlcjpzZWNyZXQ="}, "Cookie": {"a=b"}}
	for _, host := range []string{"password.test", "service.test", "both.test"} {
		e := g.Do(headgatetest.Request{Host: host, Header: password}).WantStatus(t, 200).Echo
		c := s.next()
		if c.Header.Get("Authorization") != password.Get("Authorization") || c.Header.Get("X-User") != e.Header.Get("X-User") {
			t.Errorf("%s: the copy has %v", host, c.Header)
		}
		if host != "service.test" && e.Header.Get("Authorization") != "" {
			t.Errorf("%s: the backend got the password", host)
		}
	}
}

// A mirror that does not answer, or is not there, delays neither a request nor the next one
// of its connection.
func TestNoRequestWaits(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	var arrived atomic.Int64
	slow := headgatetest.StartBackend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived.Add(1)
		<-end
	}))
	t.Cleanup(func() { close(end) })
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and reads nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) +
		mirrored("slow.test", "http://"+slow) + mirrored("dead.test", "http://"+dead.Addr().String()) + mirrored("lost.test", "http://lost.default.svc") +
		mirrored("silent.test", "http://"+silent.Addr().String(), "proxy-body-size: 0")})
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		client := g.NewClient(http2)
		defer client.CloseIdleConnections()
		for i := range 10 {
			for _, host := range []string{"slow.test", "dead.test", "lost.test", "silent.test"} {
				r, err := g.Try(client, headgatetest.Request{Method: "POST", Scheme: scheme, Host: host, HTTP2: http2, Body: bytes.NewReader(make([]byte, i*100_000))})
				if err != nil {
					t.Fatal(err)
				}
				r.WantStatus(t, 200)
			}
		}
	})
	headgatetest.Eventually(t, "all copies", func() bool { return arrived.Load() == 30 })
	headgatetest.Eventually(t, "a line about the dead mirror", func() bool { return strings.Contains(g.Log.String(), "host dead.test: copy a request to") })
	if log := g.Log.String(); strings.Contains(log, "lua tcp socket") || strings.Contains(log, "[alert]") {
		t.Errorf("the log has lines of NGINX: %s", log)
	}
}

// A namespace whose mirrors hang takes nothing from others: its copies are dropped and
// counted.
func TestCopiesAreBounded(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	var arrived atomic.Int64
	slow := headgatetest.StartBackend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived.Add(1)
		<-end
	}))
	s := startMirror(t)
	evil := strings.ReplaceAll(mirrored("evil.test", "http://"+slow)+app(t), "metadata: {name: ", "metadata: {namespace: evil, name: ")
	evil = strings.ReplaceAll(evil, "  name: evil\n", "  name: evil\n  namespace: evil\n")
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: app(t) + evil + mirrored("good.test", "http://"+s.at)})
	client := g.NewClient(false)
	defer client.CloseIdleConnections()
	const places, asked = 102, 150
	for range asked {
		r, err := g.Try(client, headgatetest.Request{Host: "evil.test"})
		if err != nil {
			t.Fatal(err)
		}
		r.WantStatus(t, 200)
	}
	g.Get("good.test", "/").WantStatus(t, 200)
	s.next()
	headgatetest.Eventually(t, "copies", func() bool { return arrived.Load() == places })
	if n := g.State().Refusals["mirror"]; n["evil"] != asked-places || len(n) != 1 {
		t.Errorf("dropped: %v", n)
	}
	close(end)
	headgatetest.Eventually(t, "room for copies", func() bool {
		g.Get("evil.test", "/").WantStatus(t, 200)
		return arrived.Load() > places
	})
}

// A copy that comes back to its own route is not copied again.
func TestCopiesOfCopies(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	s := startMirror(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t)})
	self := fmt.Sprintf("http://127.0.0.1:%d", g.HTTP)
	g.Apply(headgatetest.Service("counted") + headgatetest.Endpoints("counted", backend) + mirrored("last.test", "http://"+s.at) +
		headgatetest.Ingress("a", "a.test", "/", "counted", "mirror-target: "+self+"/", "mirror-host: b.test") +
		headgatetest.Ingress("b", "b.test", "/", "counted", "mirror-target: "+self+"/$request_uri", "mirror-host: a.test"))
	g.Get("a.test", "/").WantStatus(t, 200)
	headgatetest.Eventually(t, "a copy of the copy", func() bool { return asked.Load() == 3 })
	for range 10 {
		s.wantNone(g, headgatetest.Request{Host: "last.test"})
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// In a cluster, copies are not sent to what only this machine reaches.
func TestNoLocalMirrors(t *testing.T) {
	t.Parallel()
	s := startMirror(t)
	_, port, err := net.SplitHostPort(s.at)
	if err != nil {
		t.Fatal(err)
	}
	g := headgatetest.Start(t, headgatetest.Options{NoLocalAddresses: true, Manifests: app(t) +
		headgatetest.Service("copies") + headgatetest.Endpoints("copies", s.at) +
		mirrored("a.test", "http://127.0.0.1:"+port) + mirrored("b.test", "http://[::ffff:127.0.0.1]:"+port) +
		mirrored("c.test", "http://copies.default.svc") + mirrored("d.test", "http://169.254.169.254/latest")})
	for _, host := range []string{"a.test", "b.test", "c.test", "d.test"} {
		g.Get(host, "/")
	}
	for _, host := range []string{"127.0.0.1", "169.254.169.254"} {
		if !strings.Contains(g.Log.String(), host+" is a loopback, link-local") {
			t.Errorf("no finding about %s", host)
		}
	}
	if len(s.copies) > 0 {
		t.Error("a local address got a copy")
	}
}
