package router_test

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/router"
)

// requests are Host headers and targets. NGINX decides what they mean.
var requests = []struct{ host, target string }{
	{"a.test", "/"}, {"A.Test:80", "/x"}, {"a.test.", "/x/"}, {"a.test.:80", "/x?"}, {"a.test.:8.0", "/x?a=b?c"}, {"a.test:", "/?#"},
	{"", "/"}, {".", "/"}, {":80", "/"}, {".a", "/"}, {"a..b", "/"}, {"a:..", "/"}, {"a/b", "/"}, {"a b", "/"}, {"_", "/"}, {"*.a", "/"},
	{"[::1]", "/"}, {"[::1]:80", "/"}, {"[::1", "/"}, {"[::A].", "/"}, {"[::1].x", "/"}, {"]", "/"}, {"[]", "/"}, {"a[b]:1", "/"}, {"x:[::1]", "/"},
	{"\xff.É", "/"}, {`"$@%'~+,;`, "/"}, {"a\x7f", "/"}, {"a\x01", "/"}, {"a\tb", "/"}, {"a:b:c.", "/"}, {"..", "/"}, {"a.:1.", "/"}, {".:1", "/"},
	{"a", "/a//b///c"}, {"a", "//"}, {"a", "/./a/./"}, {"a", "/a/."}, {"a", "/a/.."}, {"a", "/a/../b"}, {"a", "/.."}, {"a", "/a/../.."}, {"a", "//.."},
	{"a", "/a/..b/.c/d."}, {"a", "/..."}, {"a", "/a/%2e%2E/b"}, {"a", "/a%2f..%2Fb"}, {"a", "/%2e"}, {"a", "/.%2e"}, {"a", "/%2e."}, {"a", "/a%2F%2fb"},
	{"a", "/%41%ff%C3%A9"}, {"a", "/%"}, {"a", "/%4"}, {"a", "/%zz"}, {"a", "/%00"}, {"a", "/%01%0a%0D%20"}, {"a", "/%25%32%66"}, {"a", "/%2541"},
	{"a", "/%3Fa?b"}, {"a", "/.%3f"}, {"a", "/.%23/a"}, {"a", "/..%25"}, {"a", "/a%23b#c?d"}, {"a", "/a?b#c"}, {"a", "/a?b%zz"}, {"a", "/a?/../x//y"},
	{"a", "/a/.?b"}, {"a", "/a/..?b"}, {"a", "/a/.#b"}, {"a", "/a/..#b?c"}, {"a", "/a+b;c=d"}, {"a", "/%2B%3d"}, {"a", "/a\x7f"}, {"a", "/a\x01"},
	{"a", "/a\xff"}, {"a", "/a b"}, {"a", ""}, {"a", "*"}, {"a", "a"}, {"a", "?"}, {"a", "#"}, {"a", "%2f"}, {"a", "/a%2"}, {"a", "/a%?"}, {"a", "/a%2?"},
	{"a", "http://b.test/x"}, {"a", "HTTP://B.test:80/x/../y"}, {"a", "http://b.test"}, {"a", "http://b.test?q"}, {"a", "http://b.test#f"},
	{"a", "http://b.test:80"}, {"a", "http://b.test:80?q"}, {"a", "http://b.test:80#f"}, {"a", "http://b.test:x/"}, {"a", "http://b.test./"},
	{"a", "http://"}, {"a", "http:///x"}, {"a", "http://?"}, {"a", "http:/x"}, {"a", "http:x"}, {"a", "x1://b/"}, {"a", "x+y.z-://b/"}, {"a", "1x://b/"},
	{"a", "http://[::1]/x"}, {"a", "http://[::1]:80/x"}, {"a", "http://[::1"}, {"a", "http://[v1.a~b]/"}, {"a", "http://u@b/"}, {"a", "http://b_c/"},
	{"a", "http://b%41/"}, {"a", "http://*.b/"}, {"a..", "http://b/"}, {"", "http://b/"}, {"a", "http://b..c/"}, {"a", "http://b:/"}, {"a", "http://:80/"},
	{"a", "http://b:80:90/"}, {"a", "http://[::1]x/"}, {"a", "http://b//c"}, {"a", "http://b/%2e%2e"}, {"a", "http://é/"}, {"a", "://b/"}, {"a", "http://[]/"},
	{"a", "http://[::1]?x"}, {"a", "http://b;c/"}, {"a", "http://b:8.0/"}, {"a", "http://-/"},
}

// TestRequests compares HostName and Target with NGINX.
func TestRequests(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	for _, r := range requests {
		compareRequest(t, b, r.host, r.target)
	}
}

// FuzzRequests does the same with anything that fits into one line.
func FuzzRequests(f *testing.F) {
	for _, r := range requests {
		f.Add(r.host, r.target)
	}
	b := newFixture(f)
	f.Fuzz(func(t *testing.T, host, target string) {
		// Spaces around a header's value or a target are not part of it.
		one := func(text string) bool {
			return !strings.ContainsAny(text, "\r\n") && len(text) < 2000 && strings.Trim(text, " ") == text
		}
		if one(host) && one(target) {
			compareRequest(t, b, host, target)
		}
	})
}

func compareRequest(t *testing.T, b *fixture, host, target string) {
	t.Helper()
	want := b.read(t, host, target)
	got := reading(host, target)
	if !slices.Equal(got, want) {
		t.Errorf("Host %q, target %q: Go %q, NGINX %q", host, target, got, want)
	}
}

// reading is the host, the path and the query, or nil if the answer is 400.
func reading(host, target string) []string {
	name, err := router.HostName(host)
	if err != nil {
		return nil
	}
	read, err := router.Target(target)
	if err != nil {
		return nil
	}
	if read.HostName != "" {
		name = read.HostName
	}
	return []string{name, read.Path, read.Query}
}

// read is what NGINX reads, or nil if it answers 400.
func (b *fixture) read(t *testing.T, host, target string) []string {
	t.Helper()
	connection, err := dial(b.dir, "read")
	must(t, err)
	defer connection.Close()
	_, err = io.WriteString(connection, "GET "+target+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
	must(t, err)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	switch response.StatusCode {
	case http.StatusOK:
		return texts(string(body))
	case http.StatusBadRequest:
		return nil
	}
	return []string{response.Status}
}
