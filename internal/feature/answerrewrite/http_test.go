package answerrewrite_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// sayer is a backend whose answers have the headers Location, Refresh and
// Set-Cookie that requests ask for.
func sayer(t *testing.T) string {
	t.Helper()
	return headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, name := range []string{"Location", "Refresh", "Set-Cookie"} {
			for _, value := range r.Header["Say-"+name] {
				w.Header().Add(name, value)
			}
		}
		if r.Header.Get("Say-Location") != "" {
			w.WriteHeader(http.StatusFound)
		}
	}))
}

func said(r headgatetest.Response) []string {
	return slices.Concat(r.Header["Location"], r.Header["Refresh"], r.Header["Set-Cookie"])
}

func TestRewrites(t *testing.T) {
	t.Parallel()
	cookies := []string{"proxy-cookie-domain: inner.local outer.example", "proxy-cookie-path: /in /out"}
	redirect := []string{"proxy-redirect-from: http://internal.local/", "proxy-redirect-to: https://public.example/"}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", sayer(t)) +
		headgatetest.Service("none") + headgatetest.Endpoints("none") +
		headgatetest.Ingress("plain", "plain.test", "/", "a") +
		headgatetest.Ingress("cookies", "cookies.test", "/", "a", cookies...) +
		headgatetest.Ingress("redirect", "redirect.test", "/", "a", redirect...) +
		headgatetest.Ingress("path", "path.test", "/", "a", "proxy-redirect-from: http://internal.local/in", "proxy-redirect-to: /out") +
		headgatetest.Ingress("relative", "relative.test", "/", "a", "proxy-redirect-from: http://internal.local/in", "proxy-redirect-to: /out", "relative-redirects: true") +
		headgatetest.Ingress("groups", "groups.test", "/(prod)/([-a-z0-9]+)/(webrtc)/?(.*)", "a", "use-regex: true", "rewrite-target: /$4", "proxy-redirect-from: /", "proxy-redirect-to: /$1/$2/$3/") +
		headgatetest.Ingress("unrewritten", "unrewritten.test", "/in/([^/]*)", "a", "use-regex: true", "proxy-redirect-from: ~http://internal.local/", "proxy-redirect-to: $scheme://$host/$1?of=$arg_x&$2") +
		headgatetest.Ingress("bad", "bad.test", "/", "a", "proxy-redirect-from: http://internal.local/", "proxy-redirect-to: https://x/;", "proxy-cookie-path: /in") +
		headgatetest.Ingress("own", "own.test", "/", "none", "permanent-redirect: http://internal.local/x", redirect[0], redirect[1]) +
		headgatetest.Ingress("down", "down.test", "/", "none", append(cookies, redirect...)...)})
	for _, c := range []struct {
		url        string
		send, want []string
	}{
		{"groups.test/prod/abc-1/webrtc/x", []string{"Location: /foo?x=$1"}, []string{"http://groups.test/prod/abc-1/webrtc/foo?x=$1"}},
		{"groups.test/prod/abc-1/webrtc/x", []string{"Refresh: 1; url=/foo"}, []string{"1; url=/prod/abc-1/webrtc/foo"}},
		{"groups.test/prod/abc-1/webrtc/x", []string{"Location: https://x.example/"}, []string{"https://x.example/"}},
		{"unrewritten.test/in/a%20b%0dc?x=y%26", []string{"Location: http://internal.local/z"}, []string{"http://unrewritten.test/a%20b%0Dc?of=y%26&"}},
		{"plain.test", []string{"Location: http://internal.local/x", "Set-Cookie: a=1; Domain=inner.local; Path=/in"}, []string{"http://internal.local/x", "a=1; Domain=inner.local; Path=/in"}},
		{"redirect.test", []string{"Location: http://internal.local/x?y=1"}, []string{"https://public.example/x?y=1"}},
		{"redirect.test", []string{"Location: http://other.local/x"}, []string{"http://other.local/x"}},
		{"redirect.test", []string{"Location: /x"}, []string{"/x"}},
		{"redirect.test", []string{"Refresh: 0; url=http://internal.local/r"}, []string{"0; url=https://public.example/r"}},
		{"redirect.test", []string{"Refresh: 5"}, []string{"5"}},
		{"path.test", []string{"Location: http://internal.local/in/x"}, []string{"http://path.test/out/x"}},
		{"relative.test", []string{"Location: http://internal.local/in/x"}, []string{"/out/x"}},
		{"bad.test", []string{"Location: http://internal.local/x", "Set-Cookie: a=1; Path=/in"}, []string{"http://internal.local/x", "a=1; Path=/in"}},
		{"own.test", nil, []string{"http://internal.local/x"}},
		{"cookies.test", []string{"Set-Cookie: a=1; Domain=inner.local; Path=/in/x", "Set-Cookie: b=2; Domain=other.local", "Set-Cookie: c=3; path=/in"},
			[]string{"a=1; Domain=outer.example; Path=/out/x", "b=2; Domain=other.local", "c=3; path=/out"}},
		{"cookies.test", []string{"Set-Cookie: Path=/in; domain=.INNER.local; Secure"}, []string{"Path=/in; domain=.outer.example; Secure"}},
		{"cookies.test", nil, nil},
	} {
		for _, http2 := range []bool{false, true} {
			host, path, _ := strings.Cut(c.url, "/")
			request := headgatetest.Request{Host: host, Path: "/" + path, Scheme: "http", HTTP2: http2, Header: sending(c.send)}
			want := c.want
			if http2 {
				request.Scheme = "https"
				want = slices.Clone(want)
				for i := range want {
					want[i] = strings.Replace(want[i], "http://"+host+"/", "https://"+host+"/", 1)
				}
			}
			if diff := cmp.Diff(want, said(g.Do(request))); diff != "" {
				t.Errorf("%s, HTTP/2 %v, %q (-want +got):\n%s", c.url, http2, c.send, diff)
			}
		}
	}
	g.Get("down.test", "/").WantStatus(t, 503)
	reloads := g.Value(g.Metrics.Reloads)
	g.Apply(headgatetest.Ingress("plain", "plain.test", "/", "a", "proxy-cookie-path: /in /now"))
	if got := said(g.Do(headgatetest.Request{Host: "plain.test", Header: sending([]string{"Set-Cookie: a=1; Path=/in"})})); !slices.Equal(got, []string{"a=1; Path=/now"}) {
		t.Errorf("after a change: %q", got)
	}
	if n := g.Value(g.Metrics.Reloads); n != reloads {
		t.Errorf("%d reloads", n-reloads)
	}
}

// sending asks a sayer for headers.
func sending(lines []string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h["Say-"+name] = append(h["Say-"+name], value)
	}
	return h
}

// What a backend says is looked at byte by byte, however it is made up: nothing
// interrupts a worker in one of Lua's own patterns.
func TestHostileCookiesTakeNoTime(t *testing.T) {
	t.Parallel()
	const most = 3500
	spaces, nested := strings.Repeat(" ", most), "(a|aa)+b"
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", sayer(t)) +
		headgatetest.Ingress("text", "text.test", "/", "a", "proxy-cookie-path: /in /out", "proxy-cookie-domain: in out") +
		headgatetest.Ingress("pattern", "pattern.test", "/", "a", "proxy-cookie-path: ~"+nested+" /out")})
	for _, c := range []struct{ host, cookie, want string }{
		{"text.test", "a=b;" + spaces + "x", "a=b;" + spaces + "x"},
		{"text.test", "a=b; path" + spaces + "x=/in", "a=b; path" + spaces + "x=/in"},
		{"text.test", "a=b; path=/in" + spaces + "x", "a=b; path=/out" + spaces + "x"},
		{"text.test", "a=b" + strings.Repeat(";", most), "a=b" + strings.Repeat(";", most)},
		{"text.test", "a=b" + strings.Repeat(";path=/in", 300), "a=b" + strings.Repeat(";path=/out", 300)},
		{"text.test", "a=b" + strings.Repeat(";", 1000) + "path=/in;path=/in", "a=b" + strings.Repeat(";", 1000) + "path=/out;path=/in"},
		{"pattern.test", "a=b" + strings.Repeat(";path="+strings.Repeat("a", 60), 50), "a=b" + strings.Repeat(";path="+strings.Repeat("a", 60), 50)},
	} {
		// A machine that has no time for it can hold up one request, but hardly
		// all of three.
		took := time.Hour
		for tries := 0; tries < 3 && took > 2*time.Second; tries++ {
			began := time.Now()
			r := g.Do(headgatetest.Request{Host: c.host, Header: http.Header{"Say-Set-Cookie": {c.cookie}}}).WantStatus(t, 200)
			if got := said(r); len(got) != 1 || got[0] != c.want {
				t.Errorf("%s: %.40q… became %.200q", c.host, c.cookie, got)
			}
			took = time.Since(began)
		}
		if took > 2*time.Second {
			t.Errorf("%s: %.40q… took %v", c.host, c.cookie, took)
		}
	}
}
