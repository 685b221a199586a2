package dataplane_test

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

var requestID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// usual is the header that a backend gets of a request that has none of its
// own, as ingress-nginx sends it.
func usual(host, scheme, port string) http.Header {
	return http.Header{
		"Host": {host}, "X-Request-Id": {"ID"}, "X-Real-Ip": {"127.0.0.1"}, "X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Host": {host},
		"X-Forwarded-Port": {port}, "X-Forwarded-Proto": {scheme}, "X-Forwarded-Scheme": {scheme}, "X-Scheme": {scheme},
	}
}

// withoutID puts "ID" where a made X-Request-ID stands.
func withoutID(h http.Header) http.Header {
	if requestID.MatchString(h.Get("X-Request-Id")) {
		h.Set("X-Request-Id", "ID")
	}
	return h
}

type headerCase struct {
	name string
	sent []string
	// change is what differs from the usual header; nil takes a header away.
	change http.Header
}

var headerCases = []headerCase{
	{"nothing", nil, nil},
	{"own", []string{"X-Multi: 1", "X-Multi: 2", "Accept: x/y", "x-lower: 1", "Cookie: a=1"},
		http.Header{"X-Multi": {"1", "2"}, "Accept": {"x/y"}, "X-Lower": {"1"}, "Cookie": {"a=1"}}},
	{"spoofed", []string{
		"X-Forwarded-For: 6.6.6.6", "X-Forwarded-Host: evil.test", "X-Forwarded-Port: 666", "X-Forwarded-Proto: evil",
		"X-Forwarded-Scheme: evil", "X-Scheme: evil", "X-Real-IP: 6.6.6.6",
	}, http.Header{"X-Original-Forwarded-For": {"6.6.6.6"}, "X-Original-Forwarded-Host": {"evil.test"}}},
	{"spoofed originals", []string{"X-Original-Forwarded-For: 6.6.6.6", "X-Original-Forwarded-Host: evil.test"}, nil},
	{"chain", []string{"X-Forwarded-For: 1.1.1.1, 2.2.2.2"}, http.Header{"X-Original-Forwarded-For": {"1.1.1.1, 2.2.2.2"}}},
	{"proxy", []string{"Proxy: http://evil.test", "PROXY: x"}, nil},
	{"underscores", []string{"X_Forwarded_For: 6.6.6.6", "x_real_ip: 6.6.6.6"}, nil},
	{"request id", []string{"X-Request-ID: mine-123"}, http.Header{"X-Request-Id": {"mine-123"}}},
	{"empty request id", []string{"X-Request-ID:"}, nil},
	{"of one hop", []string{"Keep-Alive: timeout=5", "TE: trailers"}, nil},
	{"upgrade", []string{"Upgrade: other"}, http.Header{}},
	{"upgrade to WebSocket", []string{"Upgrade: websocket"}, http.Header{"Upgrade": {"websocket"}, "Connection": {"upgrade"}}},
	{"upgrade to HTTP/2", []string{"Connection: Upgrade, HTTP2-Settings", "Upgrade: H2C", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"},
		http.Header{}},
	{"empty", []string{"X-Empty:"}, http.Header{"X-Empty": {""}}},
}

func TestRequestHeaders(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("w", startWire(t, "").address) +
		headgatetest.Ingress("plain", "plain.test", "/", "w") + headgatetest.Ingress("wild", "*.plain.test", "/", "w") +
		headgatetest.Ingress("named", "named.test", "/", "w", "proxy-body-size: 3m")})
	httpPort := strconv.Itoa(int(g.HTTP))
	for _, host := range []string{"plain.test", "named.test"} {
		for _, c := range headerCases {
			t.Run(host+" "+c.name, func(t *testing.T) {
				t.Parallel()
				want := usual(host, "http", httpPort)
				maps.Copy(want, c.change)
				text := "GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + strings.Join(append(slices.Clone(c.sent), ""), "\r\n") + "\r\n"
				if diff := cmp.Diff(want, withoutID(sentHeader(askRaw(t, g, text).Body))); diff != "" {
					t.Errorf("the backend got another header (-want +got):\n%s", diff)
				}
			})
		}
		t.Run(host+" over https", func(t *testing.T) {
			t.Parallel()
			for _, http2 := range []bool{false, true} {
				r := g.Do(headgatetest.Request{Scheme: "https", Host: host, HTTP2: http2, Header: http.Header{"User-Agent": {"x"}, "X-Forwarded-Proto": {"http"}}})
				want := usual(host, "https", "443")
				want.Set("User-Agent", "x")
				if diff := cmp.Diff(want, withoutID(sentHeader(r.Body))); diff != "" {
					t.Errorf("HTTP/2 %v (-want +got):\n%s", http2, diff)
				}
			}
		})
	}
	t.Run("the name as the client wrote it", func(t *testing.T) {
		t.Parallel()
		for _, host := range []string{"plain.test:8080", "PLAIN.test", "me.plain.test", "plain.test.", "plain.test:443"} {
			if diff := cmp.Diff(usual(host, "http", httpPort), withoutID(sentHeader(askRaw(t, g, get(host, "/")).Body))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", host, diff)
			}
		}
	})
	t.Run("HTTP/1.0", func(t *testing.T) {
		t.Parallel()
		r := askRaw(t, g, "GET /x HTTP/1.0\r\nHost: plain.test\r\n\r\n")
		if diff := cmp.Diff(usual("plain.test", "http", httpPort), withoutID(sentHeader(r.Body))); diff != "" || !strings.HasPrefix(r.Body, "GET /x HTTP/1.1\r\n") {
			t.Errorf("(-want +got):\n%s\n%s", diff, r.Body)
		}
	})
}

// No answer names the server, neither those of backends nor NGINX's own.
func TestAnswerHeaders(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("w", startWire(t, "X-Mine: 1\r\nLocation: http://internal:8080/x\r\nX-Powered-By: y\r\n").address) +
		headgatetest.Ingress("plain", "plain.test", "/", "w") + headgatetest.Ingress("named", "named.test", "/", "w", "proxy-body-size: 3m") +
		headgatetest.Ingress("slash", "slash.test", "/foo/", "w") + headgatetest.Ingress("dead", "dead.test", "/", "none")})
	for _, c := range []struct {
		host, path string
		status     int
	}{
		{"plain.test", "/", 200}, {"named.test", "/", 200}, {"unknown.test", "/", 404}, {"slash.test", "/foo", 301}, {"dead.test", "/", 503}, {"plain.test", "/..", 400},
	} {
		for _, scheme := range []string{"http", "https"} {
			r := g.Do(headgatetest.Request{Scheme: scheme, Host: c.host, Path: c.path}).WantStatus(t, c.status)
			if s := r.Header.Values("Server"); len(s) > 0 {
				t.Errorf("%s://%s%s: Server %q", scheme, c.host, c.path, s)
			}
			if strings.Contains(r.Body, "nginx/") {
				t.Errorf("%s://%s%s: the body names NGINX's version: %s", scheme, c.host, c.path, r.Body)
			}
		}
	}
	r := g.Get("named.test", "/")
	r.Header.Del("Date")
	want := http.Header{
		"Content-Type": {"text/plain"}, "Content-Length": {strconv.Itoa(len(r.Body))}, "Connection": r.Header["Connection"],
		"X-Mine": {"1"}, "Location": {"http://internal:8080/x"}, "X-Powered-By": {"y"},
	}
	if want["Connection"] == nil {
		delete(want, "Connection")
	}
	if diff := cmp.Diff(want, r.Header); diff != "" {
		t.Errorf("the answer's header (-want +got):\n%s", diff)
	}
}
