package snippet_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// within puts manifests into a namespace.
func within(namespace, manifests string) string {
	return strings.NewReplacer("metadata:\n", "metadata:\n  namespace: "+namespace+"\n", "metadata: {", "metadata: {namespace: "+namespace+", ").Replace(manifests)
}

// shared are Ingresses of one host, that of the namespace one with annotations for the path
// /one, and that of two for /two with others. The first one is the oldest.
func shared(t *testing.T, one, two []string) string {
	t.Helper()
	service := headgatetest.Service("web") + headgatetest.Endpoints("web", headgatetest.StartEcho(t, "web"))
	older := strings.Replace(headgatetest.Ingress("a", "a.test", "/one", "web", one...), "metadata:\n", "metadata:\n  creationTimestamp: 2020-01-01T00:00:00Z\n", 1)
	younger := strings.Replace(headgatetest.Ingress("b", "a.test", "/two", "web", two...), "metadata:\n", "metadata:\n  creationTimestamp: 2021-01-01T00:00:00Z\n", 1)
	return within("one", service+older) + within("two", service+younger)
}

// TestTimeOfOthers: when the time for the expressions of a server-snippet is up, the paths of
// its namespace are closed, and others go on as if it had no steps.
func TestTimeOfOthers(t *testing.T) {
	t.Parallel()
	costly := "^"
	for i := range 10 {
		costly += fmt.Sprintf("(?!.*.*X%d)", i)
	}
	costly += "Q0"
	// A match beyond the match limit is an error of one request.
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: headgatetest.Config("allow-snippet-annotations: true", "annotations-risk-level: Critical") +
		shared(t, []string{`server-snippet: rewrite ^/two$ /moved?a=1; if ($http_x_text !~ ` + costly + `) { return 418; } return 403; location ~ ` + costly + ` { return 403; }`}, nil)})
	ask := func(path string) headgatetest.Response {
		return g.Do(headgatetest.Request{Host: "a.test", Path: path, Header: http.Header{"X-Text": {strings.Repeat("a", 7900) + "Q0123456789"}}})
	}
	var own, others, none []int
	headgatetest.Eventually(t, "the time is up", func() bool {
		own = append(own, ask("/one").Status)
		r := ask("/two?b=2")
		others = append(others, r.Status)
		if r.Echo != nil && r.Echo.Target != "/two?b=2" {
			t.Fatalf("the backend of another namespace got %s", r.Echo.Target)
		}
		none = append(none, ask("/none").Status)
		return slices.Contains(own, 503) && r.Status == 200
	})
	for _, c := range []struct {
		got  []int
		want [2]int
	}{{own, [2]int{500, 503}}, {others, [2]int{500, 200}}, {none, [2]int{500, 503}}} {
		if slices.ContainsFunc(c.got, func(status int) bool { return !slices.Contains(c.want[:], status) }) {
			t.Errorf("got %v, want only %v", c.got, c.want)
		}
	}
}

// TestBypassedOthers: a server-snippet that answers before an auth check of another Ingress of
// its host is reported.
func TestBypassedOthers(t *testing.T) {
	t.Parallel()
	for guard, want := range map[string]bool{"proxy-http-version: 1.1": false, "whitelist-source-range: 10.0.0.0/8": true} {
		g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Config("allow-snippet-annotations: true", "annotations-risk-level: Critical") +
			shared(t, []string{"server-snippet: if ($arg_a) { return 200; }"}, []string{guard})})
		if got := strings.Contains(g.Log.String(), "it answers 200 before address_list"); got != want {
			t.Errorf("with %q it is reported: %v", guard, got)
		}
	}
}
