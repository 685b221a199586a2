package modsecurity_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestBounds: rules of tenants that set no limits have those of Headgate, and may lower them.
func TestBounds(t *testing.T) {
	t.Parallel()
	// The other alternative matches once the first one has been tried in all ways.
	const slow, fast = `SecRule ARGS:x "@rx ^(?:(?:a|a|aa)+[bc]|a+)$" "id:1,phase:1,deny,status:418"`, `SecRule ARGS:y "@rx ^a+$" "id:2,phase:1,deny,status:418"`
	read := []string{"SecRuleEngine On", "SecRequestBodyAccess On", "SecRequestBodyLimitAction Reject"}
	g := start(t, headgatetest.Options{Manifests: ingress("pattern", rules("SecRuleEngine On", slow, fast)) +
		ingress("body", "proxy-body-size: 20m", rules(read...)) +
		ingress("lower", rules(append(read, "SecRequestBodyLimit 10")...)) +
		ingress("detects", "proxy-body-size: 20m")})
	for path, want := range map[string]int{"/?x=a": 418, "/?y=" + strings.Repeat("a", 500): 418, "/?x=" + strings.Repeat("a", 14): 200} {
		if got := g.Get("pattern.test", path).Status; got != want {
			t.Errorf("the regular expressions of %s: status %d, want %d", path, got, want)
		}
	}
	for _, c := range []struct {
		host string
		size int
		want int
	}{{"body", 13107200, 200}, {"body", 13107201, 403}, {"lower", 10, 200}, {"lower", 11, 403}, {"detects", 13107201, 200}} {
		header := browser()
		header.Set("Content-Type", "text/plain")
		body := bytes.NewReader(bytes.Repeat([]byte("a"), c.size))
		if got := g.Do(headgatetest.Request{Method: "POST", Host: c.host + ".test", Path: "/", Header: header, Body: body}).Status; got != c.want {
			t.Errorf("%d bytes to %s: status %d, want %d", c.size, c.host, got, c.want)
		}
	}
}

// TestTrialThatFails: rules that could not be tested are tested again without another change.
func TestTrialThatFails(t *testing.T) {
	good := os.TempDir()
	g := start(t, headgatetest.Options{Manifests: ingress("x", rules("SecRuleEngine On"))})
	t.Setenv("TMPDIR", t.TempDir()+"/gone")
	g.Apply(ingress("x", rules("SecRuleEngine On", `SecRule ARGS:x "@streq bad" "id:5,phase:1,deny,status:418"`)))
	if got := g.Get("x.test", "/").Status; got != 503 {
		t.Errorf("with rules that could not be tested: status %d, want 503", got)
	}
	t.Setenv("TMPDIR", good)
	headgatetest.Eventually(t, "the rules are tested again", func() bool {
		return g.Get("x.test", "/").Status == 200 && g.Get("x.test", "/?x=bad").Status == 418
	})
}
