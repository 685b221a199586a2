package snippet_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/syntax/snippet"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

func TestBounds(t *testing.T) {
	t.Parallel()
	const c, s = "configuration-snippet", "server-snippet"
	long := `set $a 0123456789abcdef;` + strings.Repeat(` set $a "$a$a$a$a$a$a$a$a";`, 5)
	g := start(t,
		// A value has at most 64 KiB.
		of("long", c, long+` return 200 "done";`)+
			// A host that is denied answers nothing else.
			of("denied", s, `return 200 open; frobnicate on;`)+
			// Before there is a route, its path has no groups yet.
			headgatetest.Ingress("groups", "groups.test", "/a/(.*)", "web", "use-regex: true", s+`: set $x "$1";`, c+`: return 200 "$1";`)+
			// What a route's snippet says does not stay on the route of a rewrite.
			headgatetest.Ingress("from", "moved.test", "/from", "web", s+`: add_header X-S s;`, c+`: add_header X-A a; rewrite ^/from/(.*)$ /to/$1 last;`)+
			headgatetest.Ingress("to", "moved.test", "/to", "web"))
	check(t, g, []step{
		{host: "long.test", path: "/", status: 500},
		{host: "denied.test", path: "/", status: 503},
		{host: "groups.test", path: "/a/b", status: 200, body: "b"},
	})
	if h := g.Get("moved.test", "/from/x").WantStatus(t, 200).Header; h.Get("X-A") != "" || h.Get("X-S") != "s" {
		t.Errorf("behind a rewrite: %v", h)
	}
}

// TestOpensNoOthers: a server-snippet lets no clients into paths of another namespace.
func TestOpensNoOthers(t *testing.T) {
	t.Parallel()
	password := []string{"auth-type: basic", "auth-secret: users", "auth-secret-type: auth-map"}
	for text, list := range map[string][]string{
		"allow all;":   {"satisfy: any"},
		"satisfy any;": {"whitelist-source-range: 127.0.0.1"},
	} {
		g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Config("allow-snippet-annotations: true", "annotations-risk-level: Critical") +
			within("two", users) + shared(t, []string{"server-snippet: " + text}, append(list, password...))})
		if got := g.Get("a.test", "/two").Status; got != 401 {
			t.Errorf("%q of another namespace: %d", text, got)
		}
	}
}

// TestReservedHeaders: those of Headgate's own can't be set or removed.
func TestReservedHeaders(t *testing.T) {
	for _, text := range []string{
		`proxy_set_header X-Headgate-Checks 1;`, `more_set_input_headers "x-headgate-checks: 1";`, `more_clear_input_headers X-Headgate-Checks;`,
	} {
		if s := snippet.Parse(text, snippet.InLocation, snippet.Options{}); len(s.Refusals) != 1 {
			t.Errorf("%s: %v", text, s.Refusals)
		}
	}
}
