package snippet_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// authService answers with the status that the client asks for. calls counts.
func authService(calls *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.Header().Set("X-Auth-User", "u-"+r.Header.Get("X-User"))
		w.Header().Set("X-Saw", r.Header.Get("X-Set"))
		if r.Header.Get("X-Cookies") != "" {
			w.Header()["Set-Cookie"] = []string{"session=s; Path=/", "Name_1=n; Secure"}
		}
		if status, err := strconv.Atoi(r.Header.Get("X-Status")); err == nil {
			w.WriteHeader(status)
		}
	})
}

// Variables of auth_request_set have what the auth service answered, also from its cache.
func TestAuthVariables(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	auth := "auth-url: http://" + headgatetest.StartBackend(t, authService(&calls)) + "/check"
	const text = `configuration-snippet: auth_request_set $u $upstream_http_x_auth_user; auth_request_set $c $upstream_cookie_name_1; auth_request_set $s "$upstream_status $u $http_x_user";
proxy_set_header X-U $u; proxy_set_header X-C $c; proxy_set_header X-Set backend; proxy_set_header X-Saw $upstream_http_x_saw; add_header X-S $s always; add_header X-Saw $upstream_http_x_saw always;`
	g := headgatetest.Start(t, headgatetest.Options{Manifests: allowed + headgatetest.Service("web") +
		headgatetest.Endpoints("web", headgatetest.StartBackend(t, http.HandlerFunc(sending))) +
		headgatetest.Ingress("one", "one.test", "/", "web", auth, text) +
		headgatetest.Ingress("cached", "cached.test", "/", "web", auth, "auth-cache-key: $http_x_user", "auth-cache-duration: 200 401 1h", text)})
	ask := func(host, user, status, cookies string, want string) {
		t.Helper()
		r := g.Do(headgatetest.Request{Host: host, Path: "/", Header: http.Header{"X-User": {user}, "X-Status": {status}, "X-Cookies": {cookies}, "X-Set": {"client"}}})
		h := r.Header
		got := fmt.Sprintf("%d u=%s c=%s s=%s set=%s", r.Status, h.Get("Got-X-U"), h.Get("Got-X-C"), h.Get("X-S"), strings.Join(h.Values("Got-X-Set"), ","))
		if got != want {
			t.Errorf("%s, %s, %s: got %s, want %s", host, user, status, got, want)
		}
	}
	for range 2 {
		ask("one.test", "a", "", "", "200 u=u-a c= s=200 u-a a set=backend")
		ask("one.test", "b", "", "yes", "200 u=u-b c=n s=200 u-b b set=backend")
		ask("one.test", "c", "401", "", "401 u= c= s=401 u-c c set=")
		ask("one.test", "d", "403", "", "403 u= c= s=403 u-d d set=")
	}
	before := calls.Load()
	for range 3 {
		ask("cached.test", "a", "", "", "200 u=u-a c= s=200 u-a a set=backend")
		ask("cached.test", "c", "401", "", "401 u= c= s=401 u-c c set=")
	}
	if n := calls.Load() - before; n != 2 {
		t.Errorf("%d calls for two cached answers", n)
	}
	// A text that wants other headers does not get answers without them.
	g.Apply(headgatetest.Ingress("cached", "cached.test", "/", "web", auth, "auth-cache-key: $http_x_user", "auth-cache-duration: 200 401 1h",
		"configuration-snippet: auth_request_set $u $upstream_http_x_saw; proxy_set_header X-U $u;"))
	ask("cached.test", "a", "", "", "200 u=client c= s= set=client")
}

func TestErrorPages(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	auth := "auth-url: http://" + headgatetest.StartBackend(t, authService(&calls)) + "/check"
	status := func(status string) http.Header { return http.Header{"X-Status": {status}, "X-User": {"u"}} }
	const login = `location @login { add_header X-L l always; return 302 https://login.test/?to=$request_uri; } location @text { return 200 "no $request_method\n"; } location @none { add_header X-N n always; }`
	checkEffects(t, headgatetest.StartBackend(t, http.HandlerFunc(sending)), []effect{
		// A URL is a redirect.
		{location: `error_page 403 https://b.test/$request_uri; deny all;`, path: "a?b=c", want: "302; Location: https://b.test//a?b=c"},
		{location: `error_page 401 403 =303 https://b.test/;  deny all;`, want: "303; Location: https://b.test/"},
		{location: `error_page 403 =418 https://b.test/;  deny all;`, want: "302; Location: https://b.test/"},
		{server: `error_page 403 https://b.test/;`, location: `deny all;`, want: "302; Location: https://b.test/"},
		{server: `error_page 403 https://b.test/;`, location: `error_page 404 https://c.test/; deny all;`, want: "403; Location: "},
		// A path is none.
		{location: `error_page 403 $uri; deny all;`, want: "403; Location: "},
		// What the auth service answers.
		{location: `error_page 401 403 https://b.test/;`, annotations: []string{auth}, header: status("401"), want: "302; Location: https://b.test/"},
		{location: `error_page 401 403 https://b.test/;`, annotations: []string{auth}, header: status("403"), want: "302; Location: https://b.test/"},
		{location: `error_page 500 https://b.test/;`, annotations: []string{auth}, header: status("404"), want: "302; Location: https://b.test/"},
		{server: `error_page 401 403 https://b.test/;`, annotations: []string{auth}, header: status("403"), want: "302; Location: https://b.test/"},
		// A backend's errors reach clients.
		{location: `error_page 404 500 https://b.test/;`, path: "404", want: "404; X-Own: backend"},
		{location: `error_page 404 500 https://b.test/;`, annotations: []string{auth}, header: status("200"), path: "500", want: "500; X-Own: backend"},
		// What NGINX itself says.
		{location: `error_page 413 https://b.test/;`, annotations: []string{"proxy-body-size: 1"}, method: "POST", body: "long", want: "302; Location: https://b.test/"},
		// Named locations are those of the server's snippet.
		{server: login, location: `error_page 403 = @login; deny all;`, path: "a", want: "302; Location: https://login.test/?to=/a; X-L: l"},
		{server: login, location: `error_page 403 @login; deny all;`, want: "302; X-L: l"},
		{server: login, location: `error_page 403 = @text; deny all;`, want: "200"},
		{server: login, location: `error_page 403 @text; deny all;`, want: "403"},
		{server: login, location: `error_page 403 =410 @text; deny all;`, want: "410"},
		{server: login, location: `error_page 403 = @none; deny all;`, want: "404; X-N: n"},
		{server: login, location: `error_page 403 = @missing; deny all;`, want: "500"},
		{server: login, location: `error_page 401 = @login; add_header X-A a always;`, annotations: []string{auth}, header: status("401"), want: "302; X-L: l; X-A: "},
		{server: login, location: `error_page 401 =451 @text;`, annotations: []string{auth}, header: status("401"), want: "451"},
	})
}

func TestLimitRate(t *testing.T) {
	t.Parallel()
	// NGINX sends what a second may have at once, and the rest takes about another one.
	const size = 300 << 10
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, strings.Repeat("a", size)) }))
	g := headgatetest.Start(t, headgatetest.Options{Manifests: allowed + headgatetest.Service("web") + headgatetest.Endpoints("web", backend) +
		headgatetest.Ingress("one", "one.test", "/", "web", "proxy-buffering: on", "configuration-snippet: limit_rate 100k; limit_rate_after 100k;") +
		headgatetest.Ingress("two", "two.test", "/", "web", "proxy-buffering: on", "configuration-snippet: set $r 50K; limit_rate $r; limit_rate_after $arg_after;")})
	for _, c := range []struct{ host, path string }{{"one.test", "/"}, {"two.test", "/?after=200k"}} {
		begin := time.Now()
		r := g.Get(c.host, c.path).WantStatus(t, 200)
		if len(r.Body) != size {
			t.Errorf("%s: %d bytes", c.host, len(r.Body))
		}
		if took := time.Since(begin); took < 700*time.Millisecond {
			t.Errorf("%s: took %v", c.host, took)
		}
	}
}

func TestAccessLogOff(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.log")
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, AccessLog: file, Manifests: allowed + headgatetest.Service("web") +
		headgatetest.Endpoints("web", headgatetest.StartBackend(t, http.HandlerFunc(sending))) +
		headgatetest.Ingress("one", "one.test", "/", "web", "configuration-snippet: access_log off;") +
		headgatetest.Ingress("some", "some.test", "/", "web", "configuration-snippet: if ($arg_off) { access_log off; }") +
		headgatetest.Ingress("server", "server.test", "/", "web", "server-snippet: access_log off;")})
	g.Get("one.test", "/one")
	g.Get("some.test", "/two?off=1")
	g.Get("server.test", "/three")
	g.Get("some.test", "/last")
	var log string
	headgatetest.Eventually(t, "the last request is in the log", func() bool {
		text, _ := os.ReadFile(file)
		log = string(text)
		return strings.Contains(log, "/last")
	})
	if strings.Contains(log, "/one") || strings.Contains(log, "/two") || strings.Contains(log, "/three") {
		t.Errorf("the log has\n%s", log)
	}
}
