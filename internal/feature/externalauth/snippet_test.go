package externalauth_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// snippets lets snippets count.
func snippets() string {
	return headgatetest.Config("allow-snippet-annotations: true", "annotations-risk-level: Critical")
}

func TestSnippetSetsHeadersOfTheCall(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) + snippets() +
		j.guarded("a.test", "/check", `auth-snippet: proxy_set_header X-Snip "s"; proxy_set_header X-Forwarded-Host $http_host; set $v "$request_method $host"; proxy_set_header X-Two $v; proxy_set_header X-Two b; proxy_set_header X-Gone ""; proxy_set_header X-Original-URL other; proxy_set_header X-Headgate-Checks x; proxy_set_header Connection x;`) +
		j.guarded("if.test", "/check", `auth-snippet: proxy_set_header X-Outer a; if ($http_x = 1) { set $v 1; } proxy_set_header X-V $v;`)})
	for range 2 {
		r := g.Do(headgatetest.Request{Host: "a.test", Header: http.Header{"X-Gone": {"1"}, "X-Snip": {"evil"}, "X-Two": {"evil"}, "X-Mine": {"1"}}})
		r.WantStatus(t, 200)
		a := j.last(t)
		for name, want := range map[string][]string{
			"X-Snip": {"s"}, "X-Forwarded-Host": {"a.test"}, "X-Two": {"GET a.test", "b"}, "X-Gone": nil, "X-Original-Url": {"http://a.test/", "other"}, "X-Mine": {"1"},
		} {
			if got := a.Header[name]; !slices.Equal(got, want) {
				t.Errorf("the service got %s: %q, want %q", name, got, want)
			}
		}
		if checks := a.Header["X-Headgate-Checks"]; len(checks) != 1 || checks[0] == "x" {
			t.Errorf("the service got X-Headgate-Checks: %q", checks)
		}
		// The backend gets what the client sent.
		for name, want := range map[string]string{"X-Gone": "1", "X-Snip": "evil", "X-Two": "evil", "X-Forwarded-Host": "a.test"} {
			if got := r.Echo.Header.Get(name); got != want {
				t.Errorf("the backend got %s: %q, want %q", name, got, want)
			}
		}
	}
	g.Do(headgatetest.Request{Host: "if.test", Header: http.Header{"X": {"1"}}}).WantStatus(t, 200)
	if a := j.last(t); a.Header.Get("X-V") != "1" || a.Header.Get("X-Outer") != "a" {
		t.Errorf("the service got %v", a.Header)
	}
}

func TestSnippetAnswersTheCall(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) + snippets() +
		j.guarded("a.test", "/status/403", `auth-response-headers: X-User`, `auth-snippet: if ($request_uri ~ ^/public/) { return 200; } if ($request_method = DELETE) { return 401; } if ($http_x = 1) { return 302 /; } if ($arg_token = "") { set $none 1; } if ($none = "") { return 200; } if ($http_y ~ "(a+)+$") { return 204; }`) +
		j.guarded("login.test", "/status/200", `auth-signin: https://login.test/`, `auth-snippet: return 401;`) +
		j.guarded("closed.test", "/status/200", `auth-snippet: deny all; frobnicate on;`) +
		j.guarded("error.test", "/status/200", `auth-snippet: if ($http_y ~ "^(a|aa)+$") { return 200; }`)})
	for _, c := range []struct {
		r     headgatetest.Request
		want  int
		asked int
	}{
		{headgatetest.Request{Host: "a.test", Path: "/public/x", Header: http.Header{"X-User": {"evil"}}}, 200, 0},
		{headgatetest.Request{Host: "a.test", Path: "/x"}, 403, 1},
		// The call has no arguments.
		{headgatetest.Request{Host: "a.test", Path: "/x?token=1"}, 403, 1},
		{headgatetest.Request{Host: "a.test", Method: "DELETE", Path: "/x"}, 401, 0},
		{headgatetest.Request{Host: "a.test", Path: "/x", Header: http.Header{"X": {"1"}}}, 500, 0},
		{headgatetest.Request{Host: "a.test", Path: "/x", Header: http.Header{"Y": {"aaa"}}}, 200, 0},
		{headgatetest.Request{Host: "login.test", Path: "/x"}, 302, 0},
		{headgatetest.Request{Host: "closed.test", Path: "/x"}, 503, 0},
		// An expression that takes too long is neither yes nor no.
		{headgatetest.Request{Host: "error.test", Path: "/x", Header: http.Header{"Y": {longText}}}, 500, 0},
		{headgatetest.Request{Host: "error.test", Path: "/x"}, 200, 1},
	} {
		r := g.Do(c.r)
		r.WantStatus(t, c.want)
		j.wantAsked(t, c.asked)
		if c.want == 200 && r.Echo != nil && r.Echo.Header.Get("X-User") != "" {
			t.Error("the backend got the client's X-User")
		}
	}
	if n := g.State().Kept; n != 0 {
		t.Errorf("%d requests are kept", n)
	}
}

const longText = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"

func TestGlobalSnippetNeedsNoPermission(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) + headgatetest.Ingress("a", "a.test", "/", "app") +
		headgatetest.Config("global-auth-url: http://"+j.at+"/check", "global-auth-snippet: proxy_set_header X-Snip g;")})
	g.Do(headgatetest.Request{Host: "a.test"}).WantStatus(t, 200)
	if got := j.last(t).Header.Get("X-Snip"); got != "g" {
		t.Errorf("the service got X-Snip: %q", got)
	}
}

// TestSnippetReadsTheAdministratorsVariables: those of http-snippet, as in other snippets.
func TestSnippetReadsTheAdministratorsVariables(t *testing.T) {
	t.Parallel()
	j := startAuthService(t)
	g := headgatetest.Start(t, headgatetest.Options{Manifests: app(t) +
		headgatetest.Config("allow-snippet-annotations: true", "annotations-risk-level: Critical", "http-snippet: map $http_x $is_known { default 0; y 1; }") +
		j.guarded("a.test", "/status/403", `auth-snippet: if ($is_known) { return 200; }`)})
	g.Do(headgatetest.Request{Host: "a.test", Header: http.Header{"X": {"y"}}}).WantStatus(t, 200)
	g.Get("a.test", "/").WantStatus(t, 403)
}
