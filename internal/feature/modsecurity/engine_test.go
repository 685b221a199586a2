package modsecurity

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/model/prediction"
)

// TestEngineOf: the first text with a SecRuleEngine decides, and in it the last one.
func TestEngineOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		texts []string
		want  engine
	}{
		{[]string{"", base}, engineDetects},
		{[]string{"SecRule ARGS a id:1,deny", ""}, engineDetects},
		{[]string{"SecRuleEngine On\n", base}, engineUnknown},
		{[]string{"SecRuleEngine On\nSecRuleEngine Off\n", "SecRuleEngine On"}, engineOff},
		{[]string{"SecAction id:1,pass", "# SecRuleEngine Off\n\tsecruleengine \"on\""}, engineUnknown},
	} {
		if got := engineOf(c.texts...); got != c.want {
			t.Errorf("%q: %v, want %v", c.texts, got, c.want)
		}
	}
	for engine, want := range map[engine]string{engineUnknown: "403, or", engineDetects: "only reports", engineOff: "inspects nothing"} {
		if got := predict(prediction.Request{Policy: policy{engine: engine}}); !strings.Contains(got.Why, want) || got.Status != 0 {
			t.Errorf("%v: %v", engine, got)
		}
	}
}

// TestWithPlace: findings have the line of the tenant's text, and nothing that ModSecurity read.
func TestWithPlace(t *testing.T) {
	t.Parallel()
	r, err := parseRules("# comment\nSecRuleEngine On\n\nSecRule ARGS a \\\n \"phase:1\"\n")
	if err != nil {
		t.Fatal(err)
	}
	for message, want := range map[string]string{
		`NGINX rejects the configuration: "modsecurity_rules_file" directive Rules must have an ID. File: 0x5 at line: 6;`:                          "line 4: Rules must have an ID",
		`NGINX rejects the configuration: "modsecurity_rules_file" directive Rules error. File: files/x. Line: 5. Column: 9. Invalid input: secret`: "line 2: ModSecurity does not take it",
		`NGINX rejects the configuration: "modsecurity_rules_file" directive Rules error. File: files/x. Line: 1. Column: 9. Wrong`:                 "Wrong",
		`NGINX rejects the configuration: "modsecurity_rules_file" directive Rule id: 6 is duplicated;`:                                             "Rule id: 6 is duplicated",
	} {
		if got := r.withPlace(message); got != want {
			t.Errorf("%s: %q, want %q", message, got, want)
		}
	}
}
