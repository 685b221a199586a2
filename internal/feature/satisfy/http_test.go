package satisfy_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

const (
	challenge = `Basic realm="here"`
	password  = "Basic dXNlcjpwYXNz"
)

// A service lets requests pass that have its token. To others it says what they
// want to hear, 401 without a wish.
type service struct {
	at    string
	asked atomic.Int64
}

func startService(t *testing.T) *service {
	s := &service{}
	s.at = headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		w.Header().Set("X-User", "alice")
		if r.Header.Get("X-Token") == "ok" {
			return
		}
		status, err := strconv.Atoi(r.Header.Get("X-Say"))
		if err != nil {
			status = 401
		}
		if status == 401 {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		w.WriteHeader(status)
	}))
	return s
}

// A backend counts its requests, and takes upgrades only to end them.
type backend struct{ requests atomic.Int64 }

func startBackend(t *testing.T) (manifests string, b *backend) {
	b = &backend{}
	at := headgatetest.StartBackend(t, b)
	return headgatetest.Service("app") + headgatetest.Endpoints("app", at) +
		"---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'user:{PLAIN}pass'}\n" +
		"---\nkind: Secret\napiVersion: v1\nmetadata: {name: digests}\nstringData: {auth: 'user:here:0123456789abcdef0123456789abcdef'}\n", b
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.requests.Add(1)
	if r.Header.Get("Upgrade") != "" {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
		conn.Close()
		return
	}
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return
	}
	for name, value := range map[string]string{
		"Body": fmt.Sprint(n), "Got-Password": r.Header.Get("Authorization"), "Got-User": r.Header.Get("X-User"),
	} {
		w.Header().Set(name, value)
	}
}

// basic are the annotations for a password, by those for the service's token.
var basic = []string{"auth-type: basic", "auth-secret: users", "auth-realm: here"}

func (s *service) by(path string) []string {
	return []string{"auth-url: http://" + s.at + path, "auth-response-headers: X-User"}
}

// A way is how a request comes.
type way struct {
	name   string
	http2  bool
	scheme string
	body   int
	header http.Header
}

var ways = []way{
	{name: "HTTP/1.1", scheme: "http"},
	{name: "HTTP/1.1 with a body", scheme: "http", body: 100_000},
	{name: "https", scheme: "https"},
	{name: "HTTP/2", http2: true, scheme: "https"},
	{name: "HTTP/2 with a body", http2: true, scheme: "https", body: 100_000},
	{name: "WebSocket", scheme: "http", header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}},
}

func (w way) request(host string, header http.Header) headgatetest.Request {
	r := headgatetest.Request{Host: host, Scheme: w.scheme, HTTP2: w.http2, Header: http.Header{}}
	for _, from := range []http.Header{header, w.header} {
		for name, values := range from {
			r.Header[name] = values
		}
	}
	if w.body > 0 {
		r.Method, r.Body = "POST", strings.NewReader(strings.Repeat("x", w.body))
	}
	return r
}

// A client has a password, a token, both or nothing.
type client struct{ password, token bool }

var clients = []client{{}, {password: true}, {token: true}, {password: true, token: true}}

func (c client) header() http.Header {
	h := http.Header{"X-User": {"spoof"}, "Authorization": {"Basic d3Jvbmc6eA=="}}
	if c.password {
		h.Set("Authorization", password)
	}
	if c.token {
		h.Set("X-Token", "ok")
	}
	return h
}

// A route has guards, of which all or any count.
type route struct{ satisfy, guards string }

func (r route) host() string { return r.guards + "-" + r.satisfy + ".test" }

// passes reports whether a client may pass, and whether the service is asked.
func (r route) passes(c client) (pass, asked bool) {
	switch r.guards {
	case "none":
		return true, false
	case "basic":
		return c.password, false
	case "service":
		return c.token, true
	}
	if r.satisfy == "any" {
		return c.password || c.token, !c.password
	}
	return c.password && c.token, c.password
}

// challenges are those of a refusal.
func (r route) challenges(c client) []string {
	switch {
	case r.guards == "service" || r.guards == "both" && r.satisfy != "any" && c.password:
		return []string{"Bearer"}
	case r.guards == "both" && r.satisfy == "any":
		return []string{challenge, "Bearer"}
	}
	return []string{challenge}
}

func TestAllAndAny(t *testing.T) {
	t.Parallel()
	s := startService(t)
	manifests, b := startBackend(t)
	guards := map[string][]string{"none": nil, "basic": basic, "service": s.by("/"), "both": slices.Concat(basic, s.by("/"))}
	var routes []route
	for name, annotations := range guards {
		for _, satisfy := range []string{"", "all", "any", "Any"} {
			// A bad value and none are all.
			r, more := route{satisfy, name}, []string{"satisfy: " + satisfy}
			switch satisfy {
			case "":
				r.satisfy, more = "not", nil
			case "Any":
				r.satisfy = "bad"
			}
			routes = append(routes, r)
			manifests += headgatetest.Ingress(name+"-"+r.satisfy, r.host(), "/", "app", slices.Concat(annotations, more)...)
		}
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	for _, r := range routes {
		for _, w := range ways {
			for _, c := range clients {
				what := fmt.Sprintf("%s by %s, %+v", r.host(), w.name, c)
				check(t, what, g.Do(w.request(r.host(), c.header())), r, c, w)
				pass, asked := r.passes(c)
				if got := b.requests.Swap(0) > 0; got != pass {
					t.Errorf("%s: the backend was asked: %v", what, got)
				}
				if got := s.asked.Swap(0); got > 1 || got == 1 != asked {
					t.Errorf("%s: the service was asked %d times", what, got)
				}
			}
		}
	}
	if n := g.State().Kept; n != 0 {
		t.Errorf("%d requests are kept", n)
	}
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%v reloads", n)
	}
}

func check(t *testing.T, what string, got headgatetest.Response, r route, c client, w way) {
	t.Helper()
	pass, asked := r.passes(c)
	if !pass {
		if got.Status != 401 {
			t.Errorf("%s: status %d, want 401", what, got.Status)
		}
		wantChallenges(t, what, got, r.challenges(c)...)
		return
	}
	want := 200
	if w.name == "WebSocket" {
		want = 101
	}
	if got.Status != want {
		t.Errorf("%s: status %d, want %d", what, got.Status, want)
	}
	wantChallenges(t, what, got)
	if want == 101 {
		return
	}
	if got.Header.Get("Body") != fmt.Sprint(w.body) {
		t.Errorf("%s: the backend got %s bytes", what, got.Header.Get("Body"))
	}
	if password := got.Header.Get("Got-Password"); password != "" && (r.guards == "basic" || r.guards == "both") {
		t.Errorf("%s: the backend got %q", what, password)
	}
	user := ""
	if asked {
		user = "alice"
	}
	if r.guards == "none" || r.guards == "basic" {
		user = "spoof"
	}
	if name := got.Header.Get("Got-User"); name != user {
		t.Errorf("%s: the backend got the user %q, want %q", what, name, user)
	}
}

func wantChallenges(t *testing.T, what string, r headgatetest.Response, want ...string) {
	t.Helper()
	got := slices.Clone(r.Header["Www-Authenticate"])
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s: challenges %q, want %q", what, got, want)
	}
}
