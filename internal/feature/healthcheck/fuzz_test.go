package healthcheck

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzTexts: what is taken of a tenant's text makes one request, with that path and that Host
// header.
func FuzzTexts(f *testing.F) {
	for _, seed := range []string{"/healthz", "/a%20b?c=d", "//b.test", "/\r\nX: y", "/$host", "/%zz", "a.test:8080", "[::1]:80", "[:::1", "user@a.test", "GRPCS", "", "10.0.0.1", "/\u00e4", "a.test."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if path, err := parsePath(text); err == nil {
			uri, err := url.ParseRequestURI(path)
			if err != nil || uri.Host != "" || uri.Scheme != "" || uri.User != nil || uri.RequestURI() != path && uri.RawQuery != "" && !strings.HasSuffix(path, "?") ||
				!strings.HasPrefix(uri.Path, "/") || len(path) > maxTarget {
				t.Errorf("the path %q asks for %+v (%v)", path, uri, err)
			}
		}
		if host, err := parseHost(text); err == nil && text != "" {
			request, err := http.NewRequest(http.MethodGet, (&url.URL{Scheme: "http", Host: host, Path: "/"}).String(), nil)
			if err != nil || request.Host != host || request.URL.Path != "/" || request.URL.User != nil || strings.ContainsAny(host, " \t\r\n\x00") {
				t.Errorf("the host %q makes %+v (%v)", host, request, err)
			}
		}
		if name, err := parseService(text); err == nil && len(name) > maxTarget {
			t.Errorf("the service %q", name)
		}
		if d, err := between(minInterval, maxInterval)(text); err == nil && (d < minInterval || d > maxInterval) {
			t.Errorf("%q is an interval of %v", text, d)
		}
	})
}
