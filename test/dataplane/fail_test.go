package dataplane_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/gatetest"
	"github.com/headgate/headgate/internal/model"
)

// What a route's profile catches, and what Headgate itself answers there, the
// error backend answers instead: it is told of it, and nobody gets to the route's
// own backend that way.
func TestFallbackAnswersErrors(t *testing.T) {
	t.Parallel()
	codes := "catch: 401,403,404,413,500,502,503"
	b := startErrorBed(t, errorRoute("e", "own", codes)+errorRoute("b", "own", codes, "auth-type: basic", "auth-secret: users")+
		errorRoute("s", "own", codes, "auth-url: http://JUDGE/", "auth-proxy-set-headers: more")+gatetest.ConfigMap("more", "X-Call: secret")+errorRoute("u", "own", "catch: 404", "auth-url: http://JUDGE/")+
		errorRoute("dead", "dead", codes)+errorRoute("none", "none", codes)+errorRoute("denied", "own", codes, "auth-type: odd")+
		errorRoute("small", "own", codes, "proxy-body-size: 4")+errorRoute("odd", "own", codes, "proxy-body-size: 5000")+
		errorRoute("stream", "own", codes, "proxy-request-buffering: off")+
		errorRoute("r", "own", codes, "rewrite-target: /other", "upstream-vhost: other.test")+errorRoute("made", "own", "catch: 418"))
	page := func(line, of string) string { return strings.Replace(line, " of=", " of=default/"+of, 1) }
	plain := func(method, code, path, of string) string {
		return page(fmt.Sprintf(`%s a.test / code=%s original=%s format= of= body="" length=0/0 auth="" upgrade=""`, method, code, path), of)
	}
	secret := "Basic dXNlcjpwYXNz"
	cases := []errorCase{
		{"GET", "/e/x", head(), "", 200, "", "GET /e/x"},
		{"GET", "/e/x?q=1", head("X-Want", "404", "Accept", "text/x"), "", 200, page(`GET a.test /?q=1 code=404 original=/e/x?q=1 format=text/x of= body="" length=0/0 auth="" upgrade=""`, "e/own:80"), "GET /e/x?q=1"},
		{"HEAD", "/e", head("X-Want", "503", "X-Errors", "503"), "", 503, plain("HEAD", "503", "/e", "e/own:80"), "HEAD /e"},
		{"POST", "/e", head("X-Want", "404", "X-Errors", "404"), "hello", 404, page(`POST a.test / code=404 original=/e format= of= body="hello" length=5/5 auth="" upgrade=""`, "e/own:80"), "POST /e"},
		// Not in the set.
		{"POST", "/e", head("X-Want", "410"), "hello", 410, "", "POST /e"},
		{"GET", "/e", head("X-Want", "302"), "", 302, "", "GET /e"},
		// Of a backend that is not there.
		{"POST", "/dead", head("X-Errors", "502"), "hello", 502, page(`POST a.test / code=502 original=/dead format= of= body="hello" length=5/5 auth="" upgrade=""`, "dead/dead:80"), ""},
		// Guards: who was refused has not been heard.
		{"GET", "/b", head("X-Errors", "401"), "", 401, plain("GET", "401", "/b", "b/own:80"), ""},
		{"GET", "/b", head("Authorization", "Basic bm86bm8="), "", 200, plain("GET", "401", "/b", "b/own:80"), ""},
		{"POST", "/b", head("X-Errors", "401"), "hello", 401, plain("POST", "401", "/b", "b/own:80"), ""},
		{"GET", "/b", head("Authorization", secret, "X-Want", "404"), "", 200, plain("GET", "404", "/b", "b/own:80"), "GET /b"},
		{"GET", "/b", head("Authorization", secret), "", 200, "", "GET /b"},
		{"GET", "/s", head("X-Judge", "401", "X-Errors", "401", "Authorization", secret), "", 401, plain("GET", "401", "/s", "s/own:80"), ""},
		{"POST", "/s", head("X-Judge", "403"), "hello", 200, plain("POST", "403", "/s", "s/own:80"), ""},
		{"GET", "/s", head("X-Judge", "404"), "", 200, plain("GET", "500", "/s", "s/own:80"), ""},
		{"POST", "/s", head("X-Want", "401"), "hello", 200, page(`POST a.test / code=401 original=/s format= of= body="hello" length=5/5 auth="" upgrade=""`, "s/own:80"), "POST /s"},
		{"GET", "/s", head(), "", 200, "", "GET /s"},
		{"GET", "/s", head("X-Judge", "403", "X-Call", "mine"), "", 200, page(`GET a.test / code=403 original=/s format= of= body="" length=0/0 auth="mine" upgrade=""`, "s/own:80"), ""},
		{"GET", "/u", head("X-Want", "401"), "", 401, "", "GET /u"},
		{"GET", "/u", head("X-Want", "404"), "", 200, plain("GET", "404", "/u", "u/own:80"), "GET /u"},
		{"GET", "/u", head("X-Judge", "401"), "", 401, "", ""},
		{"GET", "/denied", head("X-Errors", "503"), "", 503, plain("GET", "503", "/denied", "denied/own:80"), ""},
		// Without an endpoint the error backend stands in, which is no failure.
		{"GET", "/none", head(), "", 200, `GET a.test /none code=503 original= format= of=default/none/none:80 body="" length=0/0 auth="" upgrade=""`, ""},
		{"GET", "/none", head("X-Errors", "503"), "", 503, plain("GET", "503", "/none", "none/none:80"), ""},
		// A body that stands in a file, and one that the backend does not read.
		{"POST", "/e", head("X-Want", "404"), strings.Repeat("x", 500000), 200, page(`POST a.test / code=404 original=/e format= of= body="xxxxxxxx" length=500000/500000 auth="" upgrade=""`, "e/own:80"), "POST /e"},
		{"POST", "/stream", head("X-Want", "404", "X-Early", "1"), strings.Repeat("x", 500000), 200, plain("POST", "404", "/stream", "stream/own:80"), "POST /stream"},
		// Bodies that are too large are not sent on.
		{"POST", "/small", head("X-Errors", "413"), "hello", 413, plain("POST", "413", "/small", "small/own:80"), ""},
		{"POST", "/odd", head(), strings.Repeat("x", 6000), 200, plain("POST", "413", "/odd", "odd/own:80"), ""},
		// Nor are those that were not kept.
		{"POST", "/stream", head("X-Want", "404"), "hello", 200, plain("POST", "404", "/stream", "stream/own:80"), "POST /stream"},
		{"GET", "/r?q=1", head("X-Want", "404"), "", 200, page(`GET a.test /?q=1 code=404 original=/r?q=1 format= of= body="" length=0/0 auth="" upgrade=""`, "r/own:80"), "GET /other?q=1"},
		// A policy may end the request itself.
		{"GET", "/made", head("X-Want", "418"), "", 404, "", "GET /made"},
	}
	gatetest.EveryProtocol(func(http2 bool, scheme string) {
		for _, c := range cases {
			r := b.check(t, c, scheme, http2)
			if c.status == 401 && r.Header.Get("WWW-Authenticate") == "" && strings.HasPrefix(c.path, "/b") {
				t.Error("a client is not told how to say who it is")
			}
			if c.page != "" && r.Header.Get("X-Own") != "" {
				t.Errorf("%s: a header of the backend beside the error page", c.path)
			}
		}
		b.settled(t)
	})
	oddities(t, b)
	upgrading(t, b)
}

// oddities sends what clients seldom send, on a connection that stays in step.
func oddities(t *testing.T, b *errorBed) {
	t.Helper()
	l := &line{port: b.HTTP}
	defer l.close()
	for _, c := range []struct{ path, header, page string }{
		{"/e", "X-Want: 404", `code=404 original=/e format= of=default/e/own:80 body="hello"`},
		{"/b", "X-Want: 404", `code=401 original=/b format= of=default/b/own:80 body=""`},
		{"/stream", "X-Want: 404", `code=404 original=/stream format= of=default/stream/own:80 body=""`},
		{"/small", "X-Errors: 413", `code=413 original=/small format= of=default/small/own:80 body=""`},
		{"/e", "X-Want: 503", `code=503 original=/e format= of=default/e/own:80 body="hello"`},
	} {
		if err := l.send("POST " + c.path + " HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n" + c.header + "\r\n\r\n5\r\nhello\r\n0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		r, err := l.answer()
		if err != nil {
			t.Fatalf("%s: %v", c.path, err)
		}
		if !strings.Contains(r.Header.Get("X-Page"), c.page) {
			t.Errorf("chunked %s: %d, %s; want %s", c.path, r.StatusCode, r.Header.Get("X-Page"), c.page)
		}
	}
	// Half a body, and more to come.
	half := &line{port: b.HTTP}
	defer half.close()
	if err := half.send("POST /stream HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nX-Early: 1\r\nX-Want: 404\r\n\r\n5\r\nhello\r\n"); err != nil {
		t.Fatal(err)
	}
	if r, err := half.answer(); err != nil || !strings.Contains(r.Header.Get("X-Page"), `code=404 original=/stream format= of=default/stream/own:80 body="" length=0/0`) {
		t.Errorf("half a body: %+v, %v", r, err)
	}
	half.close()
	// Who is refused is not waited for.
	if err := half.send("POST /b HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2000000\r\n\r\nhello"); err != nil {
		t.Fatal(err)
	}
	if r, err := half.answer(); err != nil || !strings.Contains(r.Header.Get("X-Page"), `code=401 original=/b format= of=default/b/own:80 body="" length=0/0`) {
		t.Errorf("the rest of a body that nobody wants: %+v, %v", r, err)
	}
	half.close()
	// The host that counts is told.
	if err := l.send("GET http://a.test/denied HTTP/1.1\r\nHost: evil.test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if r, err := l.answer(); err != nil || !strings.HasPrefix(r.Header.Get("X-Page"), "GET a.test / code=503 original=/denied ") {
		t.Errorf("a whole URL: %+v, %v", r, err)
	}
	// A long body that nobody wants does not become the next request.
	body := strings.Repeat("GET /e HTTP/1.1\r\n", 20000)
	if err := l.send(fmt.Sprintf("POST /b HTTP/1.1\r\nHost: a.test\r\nContent-Length: %d\r\n\r\n%sGET /e/next HTTP/1.1\r\nHost: a.test\r\n\r\n", len(body), body)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"401", ""} {
		r, err := l.answer()
		if err != nil || r.Header.Get("X-Failed") != want {
			t.Fatalf("a long body: failed with %q, want %q, %v", r.Header.Get("X-Failed"), want, err)
		}
	}
	for len(b.asked) > 0 {
		<-b.asked
	}
	b.settled(t)
}

// upgrading asks for a WebSocket, which the error backend hears nothing of.
func upgrading(t *testing.T, b *errorBed) {
	t.Helper()
	l := &line{port: b.HTTP}
	defer l.close()
	if err := l.send("GET /e HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Want: 404\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r, err := l.answer()
	<-b.asked
	if err != nil || r.StatusCode != 200 || !strings.HasSuffix(r.Header.Get("X-Page"), `upgrade=""`) {
		t.Errorf("a WebSocket that is refused: %+v, %v", r, err)
	}
	b.settled(t)
}

// An error backend that fails as well is no one else's affair, and one that is not
// there, or is the guarded one itself, is not asked.
func TestSecondFailureIsAnswered(t *testing.T) {
	t.Parallel()
	b := startErrorBed(t, errorRoute("e", "own", "catch: 404,503")+errorRoute("b", "own", "catch: 401,404", "auth-type: basic", "auth-secret: users"))
	r := b.check(t, errorCase{"GET", "/e", head("X-Want", "404", "X-Errors", "503"), "", 503,
		`GET a.test / code=404 original=/e format= of=default/e/own:80 body="" length=0/0 auth="" upgrade=""`, "GET /e"}, "http", false)
	if r.Body != "page" {
		t.Errorf("the second failure's body: %q", r.Body)
	}
	for endpoint, status := range map[string]int{"": 404, "127.0.0.1:1": 502} {
		b.Delete(gatetest.Endpoints("pages", b.pages))
		b.Delete(gatetest.Endpoints("pages"))
		if endpoint != "" {
			b.Apply(gatetest.Endpoints("pages", endpoint))
		}
		gatetest.EveryProtocol(func(http2 bool, scheme string) {
			b.check(t, errorCase{"GET", "/e", head("X-Want", "404"), "", status, "", "GET /e"}, scheme, http2)
			b.check(t, errorCase{"POST", "/e", head("X-Want", "404"), "hello", status, "", "POST /e"}, scheme, http2)
		})
	}
	b.Apply(errorRoute("e", "own", "catch: 404,503") + gatetest.Ingress("b", "a.test", "/b", "own", "catch: 401,404", "auth-type: basic", "auth-secret: users", "default-backend: own", "ssl-redirect: false"))
	b.check(t, errorCase{"GET", "/b", head(), "", 401, "", ""}, "http", false)
	// The fallback's endpoints are tried like any others.
	b.Apply(gatetest.Endpoints("pages", b.pages, "127.0.0.2:1"))
	for range 4 {
		b.check(t, errorCase{"POST", "/e", head("X-Want", "404"), "hello", 200,
			`POST a.test / code=404 original=/e format= of=default/e/own:80 body="hello" length=5/5 auth="" upgrade=""`, "POST /e"}, "http", false)
	}
	b.settled(t)
}

// A client that leaves while the error backend is asked leaves nothing behind.
func TestClientLeavesFallback(t *testing.T) {
	t.Parallel()
	b := startErrorBed(t, errorRoute("e", "own", "catch: 404"))
	arrived := make(chan struct{})
	slow := gatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	b.Apply(served("slow", slow) + gatetest.Ingress("slow", "a.test", "/slow", "own", "catch: 404", "default-backend: slow", "ssl-redirect: false"))
	for range 3 {
		l := &line{port: b.HTTP}
		if err := l.send("GET /slow HTTP/1.1\r\nHost: a.test\r\nX-Want: 404\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case <-arrived:
		case <-time.After(gatetest.Patience):
			t.Fatal("the error backend is not asked")
		}
		if b.State().Kept != 1 {
			t.Error("the request that waits is not kept")
		}
		l.close()
		<-b.asked
		b.settled(t)
	}
}

// The first profile with a set of statuses is a reload, the next with the same
// set is none. Before it there is no way to the fallback.
func TestOneReloadForEachSetOfStatuses(t *testing.T) {
	t.Parallel()
	b := startErrorBed(t, errorRoute("e", "own")+errorRoute("b", "own", "catch-own: 401", "auth-type: basic", "auth-secret: users"))
	b.check(t, errorCase{"GET", "/b", head(), "", 401, "", ""}, "http", false)
	for _, step := range []struct {
		name, catch string
		reloads     int
	}{{"one", "404,503", 1}, {"two", "503, 404", 0}, {"three", "404", 1}, {"four", "408", 0}} {
		before := b.Value(b.Metrics.Reloads)
		b.Apply(errorRoute(step.name, "own", "catch: "+step.catch))
		if n := b.Value(b.Metrics.Reloads) - before; n != step.reloads {
			t.Errorf("%s catches %s: %d reloads, want %d", step.name, step.catch, n, step.reloads)
		}
	}
	b.check(t, errorCase{"GET", "/b", head(), "", 200, `GET a.test / code=401 original=/b format= of=default/b/own:80 body="" length=0/0 auth="" upgrade=""`, ""}, "http", false)
	for path, want := range map[string]string{"/one": "404", "/two": "404", "/three": "404", "/four": "", "/e": ""} {
		r := b.Do(gatetest.Request{Host: "a.test", Path: path, Header: head("X-Want", "404")})
		<-b.asked
		if r.Header.Get("X-Failed") != want {
			t.Errorf("%s failed with %q, want %q", path, r.Header.Get("X-Failed"), want)
		}
	}
}

// NGINX catches every status that a set can hold, over HTTP/1.1 and HTTP/2. What
// no set can hold passes.
func TestEveryStatusIsCaught(t *testing.T) {
	t.Parallel()
	var every model.Statuses
	for status := range 1000 {
		every.Add(status)
	}
	b := startErrorBed(t, errorRoute("e", "own", "catch: "+every.String()))
	for _, http2 := range []bool{false, true} {
		client := b.NewClient(http2)
		defer client.CloseIdleConnections()
		for status := 200; status < 600; status++ {
			r, err := b.Try(client, gatetest.Request{Host: "a.test", Path: "/e", Scheme: "https", HTTP2: http2, Header: head("X-Want", strconv.Itoa(status))})
			if err != nil {
				t.Fatalf("%d: %v", status, err)
			}
			<-b.asked
			if caught := r.Header.Get("X-Failed"); caught == strconv.Itoa(status) != every.Has(status) || every.Has(status) != (r.Body == "page") || !every.Has(status) && r.Status != status {
				t.Errorf("%d by %s: caught %q, answered %d %q", status, r.Proto, caught, r.Status, r.Body)
			}
		}
	}
	b.settled(t)
}
