package modsecurity_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestAuditLogWithErrorPages: a refusal of phase 2 is in NGINX's log, also where the error
// service answers instead, and then not in the audit log, as modsecurity.md says.
func TestAuditLogWithErrorPages(t *testing.T) {
	t.Parallel()
	pages := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	audited := func(id string) string {
		return rules("SecRuleEngine On", "SecAuditEngine RelevantOnly", `SecAuditLogRelevantStatus "^4"`, "SecAuditLogParts AHZ", "SecAuditLogFormat JSON",
			"SecAuditLogType Serial", "SecAuditLog /dev/stderr", `SecRule ARGS:x "@streq bad" "id:`+id+`,phase:2,deny,log,auditlog"`)
	}
	g := start(t, headgatetest.Options{Manifests: headgatetest.Service("pages") + headgatetest.Endpoints("pages", pages) +
		ingress("paged", audited("71001"), "custom-http-errors: 403", "default-backend: pages") + ingress("plain", audited("71002"))})
	for _, host := range []string{"paged.test", "plain.test"} {
		if got := g.Get(host, "/?x=bad").Status; got != http.StatusForbidden {
			t.Errorf("%s: status %d, want 403", host, got)
		}
	}
	lines := func(id string) (refused, audit int) {
		for line := range strings.Lines(g.Log.String()) {
			switch {
			case strings.Contains(line, "Access denied") && strings.Contains(line, `id \"`+id):
				refused++
			case strings.Contains(line, "transaction") && strings.Contains(line, id):
				audit++
			}
		}
		return refused, audit
	}
	// The other request came later, so its line is the last one.
	headgatetest.Eventually(t, "the second refusal is in both logs", func() bool {
		refused, audit := lines("71002")
		return refused > 0 && audit > 0
	})
	if refused, audit := lines("71001"); refused == 0 || audit != 0 {
		t.Errorf("with an error page: %d lines in the log, %d in the audit log", refused, audit)
	}
}
