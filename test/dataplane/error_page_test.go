package dataplane_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// catching are the real features behind one that counts requests, and of 418 makes 404
// on one path. Each response has what it knows.
func catching() []feature.Feature {
	return append([]feature.Feature{{
		Name: "catching",
		Route: func(_ feature.Values, out *feature.RouteOut) {
			feature.Add(out.Route, "catching", out.Route.Path)
			out.Route.Variant.HeaderFilter = true
		},
		Lua: featuretest.Module("catching", `
local requests = require "headgate.request"
local begun, over, twice = 0, 0, 0
return {
    rewrite = function(_, request)
        begun = begun + 1
        request.begun = true
    end,
    error_page = function(path, request)
        request.fails = (request.fails or 0) + 1
        if request.failed == 418 and path == "/made" then
            return requests.finish(request, 404)
        end
    end,
    header_filter = function(_, request)
        local h = ngx.header
        h["X-Begun"], h["X-Over"], h["X-Over-Twice"], h["X-Failed"] = begun, over, twice, request.failed
        h["X-Fails"] = request.fails or 0
        h["X-Filters"] = (tonumber(h["X-Filters"]) or 0) + 1
    end,
    log = function(_, request)
        twice = twice + (request.over and 1 or 0)
        over = over + (request.begun and 1 or 0)
        request.over = true
    end,
}`),
	}}, all.Features()...)
}

// statusOf answers with the status that the header has, 200 without it.
func statusOf(w http.ResponseWriter, r *http.Request, header string) {
	status, err := strconv.Atoi(r.Header.Get(header))
	if err != nil {
		status = 200
	}
	w.WriteHeader(status)
}

// An errorFixture has a backend that answers with the status of X-Want, and one for
// errors, which answers with that of X-Errors and says what it was asked.
type errorFixture struct {
	*headgatetest.Instance
	// asked gets a line for each request that reaches the route's own backend.
	asked chan string
	pages string
}

func startErrorFixture(t *testing.T, manifests string) *errorFixture {
	t.Helper()
	b := &errorFixture{asked: make(chan string, 1000)}
	own := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.asked <- r.Method + " " + r.RequestURI
		if r.Header.Get("X-Early") == "" {
			io.Copy(io.Discard, r.Body)
		} else {
			// Go would wait for the body.
			w.Header().Set("Connection", "close")
		}
		w.Header().Set("X-Own", "1")
		w.Header().Set("WWW-Authenticate", "Own")
		statusOf(w, r, "X-Want")
		fmt.Fprint(w, "own")
	}))
	b.pages = headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h := r.Header
		w.Header().Set("X-Page", fmt.Sprintf("%s %s %s code=%s original=%s format=%s of=%s/%s/%s:%s body=%.8q length=%d/%d auth=%q upgrade=%q", r.Method, r.Host, r.RequestURI,
			h.Get("X-Code"), h.Get("X-Original-URI"), h.Get("X-Format"), h.Get("X-Namespace"), h.Get("X-Ingress-Name"), h.Get("X-Service-Name"), h.Get("X-Service-Port"),
			body, len(body), r.ContentLength, h.Get("Authorization")+h.Get("X-Call")+h.Get("X-User")+h.Get("Cookie"), h.Get("Upgrade")))
		w.Header().Set("X-Id", h.Get("X-Request-ID"))
		statusOf(w, r, "X-Errors")
		fmt.Fprint(w, "page")
	}))
	auth := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-User", "user")
		statusOf(w, r, "X-Verdict")
	}))
	b.Instance = headgatetest.Start(t, headgatetest.Options{
		Workers: 1, Features: catching(), Timing: headgatetest.Hasty(), DefaultBackend: "common",
		Manifests: served("own", own) + served("pages", b.pages) + served("common", b.pages) + served("none") + served("dead", "127.0.0.1:1") +
			"---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'user:{PLAIN}pass'}\n" + strings.ReplaceAll(manifests, "AUTH_SERVICE", auth),
	})
	return b
}

// errorRoute is an Ingress of a.test with the error backend.
func errorRoute(name, service string, annotations ...string) string {
	return headgatetest.Ingress(name, "a.test", "/"+name, service, append(annotations, "default-backend: pages", "ssl-redirect: false")...)
}

// An errorCase is a request and what becomes of it. Page and own are what reaches the
// error backend and the route's own, empty for nothing.
type errorCase struct {
	method, path string
	header       http.Header
	body         string
	status       int
	page, own    string
}

func (b *errorFixture) check(t *testing.T, c errorCase, scheme string, http2 bool) headgatetest.Response {
	t.Helper()
	q := headgatetest.Request{Method: c.method, Host: "a.test", Path: c.path, Header: c.header.Clone(), Scheme: scheme, HTTP2: http2}
	if c.body != "" {
		q.Body = strings.NewReader(c.body)
	}
	r := b.Do(q)
	own := ""
	select {
	case own = <-b.asked:
	default:
	}
	if r.Status != c.status || r.Header.Get("X-Page") != c.page || own != c.own {
		t.Errorf("%s %s %v by %s: %d\n page %s\n own  %s\nwant %d\n page %s\n own  %s",
			c.method, c.path, c.header, r.Proto, r.Status, r.Header.Get("X-Page"), own, c.status, c.page, c.own)
	}
	if (r.Header.Get("X-Page") != "") != (r.Header.Get("X-Id") != "") {
		t.Error("a page without X-Request-ID")
	}
	if c.method != "HEAD" && c.page != "" && r.Body != "page" || c.page != "" && r.Header.Get("X-Own") != "" {
		t.Errorf("%s %s: the body is %q, the header %v", c.method, c.path, r.Body, r.Header)
	}
	if (r.Header.Get("X-Failed") != "") != (r.Header.Get("X-Fails") == "1") || r.Header.Get("X-Filters") != "1" {
		t.Errorf("%s %s: failed with %q, asked %s times, %s filters", c.method, c.path, r.Header.Get("X-Failed"), r.Header.Get("X-Fails"), r.Header.Get("X-Filters"))
	}
	return r
}

// synced fails the test unless every request but this one is over, once.
func (b *errorFixture) synced(t *testing.T) {
	t.Helper()
	headgatetest.Eventually(t, "all requests are over", func() bool {
		h := b.Get("a.test", "/e").Header
		<-b.asked
		if h.Get("X-Over-Twice") != "0" {
			t.Fatalf("%s requests were over twice", h.Get("X-Over-Twice"))
		}
		begun, _ := strconv.Atoi(h.Get("X-Begun"))
		over, err := strconv.Atoi(h.Get("X-Over"))
		return err == nil && begun == over+1
	})
	headgatetest.Eventually(t, "no request is kept", func() bool { return b.State().Kept == 0 })
}

func head(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = []string{pairs[i+1]}
	}
	return h
}

// errorRoutes are the Ingresses of TestFallbackAnswersErrors.
func errorRoutes() string {
	codes := "custom-http-errors: 401,403,404,413,500,502,503"
	return errorRoute("e", "own", codes) + errorRoute("b", "own", codes, "auth-type: basic", "auth-secret: users") +
		errorRoute("s", "own", codes, "auth-url: http://AUTH_SERVICE/") + errorRoute("u", "own", "custom-http-errors: 404", "auth-url: http://AUTH_SERVICE/") +
		errorRoute("dead", "dead", codes) + errorRoute("none", "none", codes) + errorRoute("denied", "own", codes, "auth-type: odd") +
		errorRoute("small", "own", codes, "proxy-body-size: 4") + errorRoute("odd", "own", codes, "proxy-body-size: 5000") +
		errorRoute("stream", "own", codes, "proxy-request-buffering: off") +
		errorRoute("r", "own", codes, "rewrite-target: /other", "upstream-vhost: other.test") + errorRoute("made", "own", "custom-http-errors: 418") +
		errorRoute("i", "own", codes, "disable-proxy-intercept-errors: true") + errorRoute("idead", "dead", codes, "disable-proxy-intercept-errors: true") +
		errorRoute("is", "own", codes, "disable-proxy-intercept-errors: true", "auth-url: http://AUTH_SERVICE/") +
		"---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: call}\ndata: {X-Call: secret}\n" +
		errorRoute("user", "own", codes, "auth-url: http://AUTH_SERVICE/", "auth-response-headers: X-User", "auth-proxy-set-headers: default/call") +
		headgatetest.Ingress("common", "a.test", "/common", "own", codes, "ssl-redirect: false")
}

// The fallback backend answers instead of statuses that a route's profile catches, and
// of Headgate's own. It gets the status and what the client asked for, and no one gets to
// the route's own backend that way.
func TestFallbackAnswersErrors(t *testing.T) {
	t.Parallel()
	b := startErrorFixture(t, errorRoutes())
	page := func(line, of string) string { return strings.Replace(line, " of=", " of=default/"+of, 1) }
	plain := func(method, code, path, of string) string {
		return page(fmt.Sprintf(`%s a.test / code=%s original=%s format= of= body="" length=0/0 auth="" upgrade=""`, method, code, path), of)
	}
	unnamed := func(path string) string {
		return fmt.Sprintf(`POST a.test / code=413 original=%s format= of=//: body="" length=0/0 auth="" upgrade=""`, path)
	}
	user := "Basic dXNlcjpwYXNz"
	cases := []errorCase{
		{"GET", "/e/x", head(), "", 200, "", "GET /e/x"},
		{"GET", "/e/x?q=1", head("X-Want", "404", "Accept", "text/x"), "", 200, page(`GET a.test /?q=1 code=404 original=/e/x?q=1 format=text/x of= body="" length=0/0 auth="" upgrade=""`, "e/own:80"), "GET /e/x?q=1"},
		{"HEAD", "/e", head("X-Want", "503", "X-Errors", "503"), "", 503, plain("HEAD", "503", "/e", "e/own:80"), "HEAD /e"},
		{"POST", "/e", head("X-Want", "404", "X-Errors", "404"), "hello", 404, page(`POST a.test / code=404 original=/e format= of= body="hello" length=5/5 auth="" upgrade=""`, "e/own:80"), "POST /e"},
		// Without a fallback, the default backend.
		{"GET", "/common", head("X-Want", "404"), "", 200, plain("GET", "404", "/common", "common/own:80"), "GET /common"},
		// Not in the set.
		{"POST", "/e", head("X-Want", "410"), "hello", 410, "", "POST /e"},
		{"GET", "/e", head("X-Want", "302"), "", 302, "", "GET /e"},
		// Of a backend that does not exist.
		{"POST", "/dead", head("X-Errors", "502"), "hello", 502, page(`POST a.test / code=502 original=/dead format= of= body="hello" length=5/5 auth="" upgrade=""`, "dead/dead:80"), ""},
		// What was denied gets no password and no body on its way.
		{"GET", "/b", head("X-Errors", "401"), "", 401, plain("GET", "401", "/b", "b/own:80"), ""},
		{"GET", "/b", head("Authorization", "Basic bm86bm8="), "", 200, plain("GET", "401", "/b", "b/own:80"), ""},
		{"POST", "/b", head("X-Errors", "401"), "hello", 401, plain("POST", "401", "/b", "b/own:80"), ""},
		{"GET", "/b", head("Authorization", user, "X-Want", "404"), "", 200, plain("GET", "404", "/b", "b/own:80"), "GET /b"},
		{"GET", "/b", head("Authorization", user), "", 200, "", "GET /b"},
		{"GET", "/s", head("X-Verdict", "401", "X-Errors", "401", "Authorization", user), "", 401, plain("GET", "401", "/s", "s/own:80"), ""},
		{"POST", "/s", head("X-Verdict", "403"), "hello", 200, plain("POST", "403", "/s", "s/own:80"), ""},
		{"GET", "/s", head("X-Verdict", "404"), "", 200, plain("GET", "500", "/s", "s/own:80"), ""},
		{"POST", "/s", head("X-Want", "401"), "hello", 200, plain("POST", "401", "/s", "s/own:80"), "POST /s"},
		{"POST", "/e", head("X-Want", "403"), strings.Repeat("x", 500000), 200, plain("POST", "403", "/e", "e/own:80"), "POST /e"},
		{"GET", "/s", head(), "", 200, "", "GET /s"},
		{"GET", "/u", head("X-Want", "401"), "", 401, "", "GET /u"},
		{"GET", "/u", head("X-Want", "404"), "", 200, plain("GET", "404", "/u", "u/own:80"), "GET /u"},
		{"GET", "/u", head("X-Verdict", "401"), "", 401, "", ""},
		{"GET", "/denied", head("X-Errors", "503"), "", 503, plain("GET", "503", "/denied", "denied/own:80"), ""},
		// Without an endpoint the fallback backend stands in, which is not a failure.
		{"GET", "/none", head(), "", 200, `GET a.test /none code=503 original= format= of=default/none/none:80 body="" length=0/0 auth="" upgrade=""`, ""},
		{"GET", "/none", head("X-Errors", "503"), "", 503, plain("GET", "503", "/none", "none/none:80"), ""},
		// A body that is in a file, and one that the backend does not read.
		{"POST", "/e", head("X-Want", "404"), strings.Repeat("x", 500000), 200, page(`POST a.test / code=404 original=/e format= of= body="xxxxxxxx" length=500000/500000 auth="" upgrade=""`, "e/own:80"), "POST /e"},
		{"POST", "/stream", head("X-Want", "404", "X-Early", "1"), strings.Repeat("x", 500000), 200, plain("POST", "404", "/stream", "stream/own:80"), "POST /stream"},
		{"POST", "/stream", head("X-Want", "404"), strings.Repeat("x", 500000), 200, plain("POST", "404", "/stream", "stream/own:80"), "POST /stream"},
		// Bodies that are too large are not sent on.
		{"POST", "/small", head("X-Errors", "413"), "hello", 413, unnamed("/small"), ""},
		{"POST", "/odd", head(), strings.Repeat("x", 6000), 200, unnamed("/odd"), ""},
		{"GET", "/r?q=1", head("X-Want", "404"), "", 200, page(`GET a.test /?q=1 code=404 original=/r?q=1 format= of= body="" length=0/0 auth="" upgrade=""`, "r/own:80"), "GET /other?q=1"},
		// Credentials are for the route's own backend, and cookies unless they were refused.
		{"GET", "/e", head("X-Want", "404", "Authorization", user, "Proxy-Authorization", user, "Cookie", "a=b"), "", 200, strings.Replace(plain("GET", "404", "/e", "e/own:80"), `auth=""`, `auth="a=b"`, 1), "GET /e"},
		{"GET", "/e", head("X-Want", "403", "Authorization", user, "Cookie", "a=b"), "", 200, plain("GET", "403", "/e", "e/own:80"), "GET /e"},
		{"GET", "/b", head("Cookie", "a=b"), "", 200, plain("GET", "401", "/b", "b/own:80"), ""},
		{"GET", "/user", head("X-Want", "404"), "", 200, plain("GET", "404", "/user", "user/own:80"), "GET /user"},
		{"GET", "/user", head("X-Verdict", "403", "X-User", "forged"), "", 200, plain("GET", "403", "/user", "user/own:80"), ""},
		// Only what Headgate and NGINX make.
		{"GET", "/i", head("X-Want", "404"), "", 404, "", "GET /i"},
		{"POST", "/idead", head("X-Errors", "502"), "hello", 502, page(`POST a.test / code=502 original=/idead format= of= body="hello" length=5/5 auth="" upgrade=""`, "idead/dead:80"), ""},
		{"GET", "/is", head("X-Want", "401"), "", 401, "", "GET /is"},
		{"GET", "/is", head("X-Want", "403"), "", 403, "", "GET /is"},
		{"GET", "/is", head("X-Verdict", "401"), "", 200, plain("GET", "401", "/is", "is/own:80"), ""},
		{"GET", "/is", head("X-Verdict", "403"), "", 200, plain("GET", "403", "/is", "is/own:80"), ""},
		// A policy may end the request itself.
		{"GET", "/made", head("X-Want", "418"), "", 404, "", "GET /made"},
	}
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		for _, c := range cases {
			r := b.check(t, c, scheme, http2)
			if c.status == 401 && r.Header.Get("WWW-Authenticate") == "" && strings.HasPrefix(c.path, "/b") {
				t.Error("a client can't know how to authenticate")
			}
			if own := r.Header.Get("X-Own"); (own != "") != (c.own != "" && c.page == "" && c.path != "/made") {
				t.Errorf("%s %s %v: the backend's response came %q", c.method, c.path, c.header, own)
			}
		}
		b.synced(t)
	})
	oddities(t, b)
}

// oddities sends what clients seldom send, on a connection that stays in step.
func oddities(t *testing.T, b *errorFixture) {
	t.Helper()
	l := &line{port: b.HTTP}
	defer l.close()
	answer := func(l *line, request, page string) {
		t.Helper()
		if err := l.send(request); err != nil {
			t.Fatal(err)
		}
		r, err := l.answer()
		if err != nil {
			t.Fatalf("%.60q: %v", request, err)
		}
		if !strings.Contains(r.Header.Get("X-Page"), page) {
			t.Errorf("%.60q: %d, %s; want %s", request, r.StatusCode, r.Header.Get("X-Page"), page)
		}
	}
	for _, c := range []struct{ path, header, page string }{
		{"/e", "X-Want: 404", `code=404 original=/e format= of=default/e/own:80 body="hello"`},
		{"/b", "X-Want: 404", `code=401 original=/b format= of=default/b/own:80 body=""`},
		{"/small", "X-Errors: 413", `code=413 original=/small format= of=//: body=""`},
		{"/e", "X-Want: 503", `code=503 original=/e format= of=default/e/own:80 body="hello"`},
	} {
		answer(l, "POST "+c.path+" HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n"+c.header+"\r\n\r\n5\r\nhello\r\n0\r\n\r\n", c.page)
	}
	// The host that counts is named, and a WebSocket that the backend refuses is none.
	answer(l, "GET http://a.test/denied HTTP/1.1\r\nHost: evil.test\r\n\r\n", "GET a.test / code=503 original=/denied ")
	answer(l, "GET /e HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Want: 404\r\n\r\n", `upgrade=""`)
	// A long body that is not read does not become the next request.
	body := strings.Repeat("GET /e HTTP/1.1\r\n", 20000)
	answer(l, fmt.Sprintf("POST /b HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n%sGET /e/next HTTP/1.1\r\nHost: a.test\r\nX-Want: 404\r\n\r\n", len(body), body), "code=401")
	if r, err := l.answer(); err != nil || !strings.Contains(r.Header.Get("X-Page"), "original=/e/next") {
		t.Errorf("after a long body: %v, %v", r, err)
	}
	// Half a body, and more to come.
	half := &line{port: b.HTTP}
	defer half.close()
	answer(half, "POST /stream HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nX-Early: 1\r\nX-Want: 404\r\n\r\n5\r\nhello\r\n", `code=404 original=/stream format= of=default/stream/own:80 body="" length=0/0`)
	half.close()
	// A client that is denied is not waited for.
	answer(half, "POST /b HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2000000\r\n\r\nhello", `code=401 original=/b format= of=default/b/own:80 body="" length=0/0`)
	half.close()
	for len(b.asked) > 0 {
		<-b.asked
	}
	b.synced(t)
}

// A fallback backend that fails as well answers, and one without endpoints, or that is
// the denied one itself, is not asked.
func TestSecondFailureIsAnswered(t *testing.T) {
	t.Parallel()
	b := startErrorFixture(t, errorRoute("e", "own", "custom-http-errors: 404,503")+headgatetest.Ingress("b", "a.test", "/b", "own", "custom-http-errors: 401,404", "auth-type: basic", "auth-secret: users", "default-backend: own", "ssl-redirect: false"))
	r := b.check(t, errorCase{"GET", "/e", head("X-Want", "404", "X-Errors", "503"), "", 503,
		`GET a.test / code=404 original=/e format= of=default/e/own:80 body="" length=0/0 auth="" upgrade=""`, "GET /e"}, "http", false)
	if r.Body != "page" {
		t.Errorf("the second failure's body: %q", r.Body)
	}
	b.check(t, errorCase{"GET", "/b", head(), "", 200, `GET a.test / code=401 original=/b format= of=default/b/own:80 body="" length=0/0 auth="" upgrade=""`, ""}, "http", false)
	// The fallback's endpoints are tried like any others.
	b.Apply(headgatetest.Endpoints("pages", b.pages, "127.0.0.2:1"))
	for range 4 {
		b.check(t, errorCase{"POST", "/e", head("X-Want", "404"), "hello", 200,
			`POST a.test / code=404 original=/e format= of=default/e/own:80 body="hello" length=5/5 auth="" upgrade=""`, "POST /e"}, "http", false)
	}
	// Without any, the default backend's are; and without these the built-in one answers.
	answered := func(status int, get, post string) {
		t.Helper()
		headgatetest.EveryProtocol(func(http2 bool, scheme string) {
			b.check(t, errorCase{"GET", "/e", head("X-Want", "404"), "", status, get, "GET /e"}, scheme, http2)
			b.check(t, errorCase{"POST", "/e", head("X-Want", "404"), "hello", status, post, "POST /e"}, scheme, http2)
		})
	}
	b.Delete(headgatetest.Endpoints("pages", b.pages) + headgatetest.Endpoints("pages", b.pages, "127.0.0.2:1"))
	answered(200, `GET a.test / code=404 original=/e format= of=default/e/own:80 body="" length=0/0 auth="" upgrade=""`,
		`POST a.test / code=404 original=/e format= of=default/e/own:80 body="hello" length=5/5 auth="" upgrade=""`)
	b.Delete(headgatetest.Endpoints("common", b.pages))
	answered(404, "", "")
	// The built-in default backend hides what was refused.
	b.check(t, errorCase{"GET", "/b", head(), "", 404, "", ""}, "http", false)
	b.Apply(headgatetest.Endpoints("pages", "127.0.0.1:1"))
	answered(502, "", "")
	b.synced(t)
}

// A client that leaves while the fallback backend is asked leaves nothing behind.
func TestClientLeavesFallback(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	slow := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	b := startErrorFixture(t, errorRoute("e", "own", "custom-http-errors: 404")+served("slow", slow)+headgatetest.Ingress("slow", "a.test", "/slow", "own", "custom-http-errors: 404", "default-backend: slow", "ssl-redirect: false"))
	for range 3 {
		l := &line{port: b.HTTP}
		if err := l.send("GET /slow HTTP/1.1\r\nHost: a.test\r\nX-Want: 404\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case <-arrived:
		case <-time.After(headgatetest.Timeout):
			t.Fatal("the fallback backend is not asked")
		}
		if b.State().Kept != 1 {
			t.Error("the request that waits is not kept")
		}
		l.close()
		<-b.asked
		b.synced(t)
	}
}

// NGINX catches every status that a directive can hold, over HTTP/1.1 and HTTP/2, for a
// key as well, and no other one. The first set of statuses is a reload, an equal one none.
func TestEveryStatusIsCaught(t *testing.T) {
	t.Parallel()
	b := startErrorFixture(t, errorRoute("e", "own"))
	every := "custom-http-errors: "
	for status := range 1000 {
		if directive.Catchable(status) {
			every += strconv.Itoa(status) + ","
		}
	}
	b.ApplyReloading(headgatetest.Config(every))
	before := b.Value(b.Metrics.Reloads)
	b.Apply(errorRoute("same", "own", every))
	if n := b.Value(b.Metrics.Reloads) - before; n != 0 {
		t.Errorf("%d reloads for statuses that are caught already", n)
	}
	for _, http2 := range []bool{false, true} {
		client := b.NewClient(http2)
		defer client.CloseIdleConnections()
		for status := 200; status < 600; status++ {
			r, err := b.Try(client, headgatetest.Request{Host: "a.test", Path: "/e", Scheme: "https", HTTP2: http2, Header: head("X-Want", strconv.Itoa(status))})
			if err != nil {
				t.Fatalf("%d: %v", status, err)
			}
			<-b.asked
			caught := directive.Catchable(status)
			if r.Header.Get("X-Failed") == strconv.Itoa(status) != caught || caught != (r.Body == "page") || !caught && r.Status != status {
				t.Errorf("%d by %s: caught %q, answered %d %q", status, r.Proto, r.Header.Get("X-Failed"), r.Status, r.Body)
			}
		}
	}
	b.synced(t)
}
