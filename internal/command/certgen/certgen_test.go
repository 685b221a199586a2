package certgen

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/command/release"
	"github.com/headgate/headgate/internal/command/usage"
)

const version = "1.2.3"

// runCertgen runs the program by ingress-nginx's name.
func runCertgen(t *testing.T, args ...string) (printed, logged string, err error) {
	t.Helper()
	var out, log bytes.Buffer
	command := Command(release.Build{Version: version})
	command.SetOut(&out)
	command.SetErr(&log)
	command.SetArgs(args)
	err = command.ExecuteContext(t.Context())
	return out.String(), log.String(), err
}

func TestCertgenFlags(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	const create, patch = "create --namespace x --secret-name s ", "patch --namespace x --secret-name s "
	for _, c := range []struct{ args, want string }{
		{"create", `required flag(s) "host", "secret-name", "namespace" not set`},
		{"patch", `required flag(s) "secret-name", "namespace" not set`},
		{create + "--host a", `"level":"fatal","msg":"create failed","err":"connect to Kubernetes: not running in a Pod`},
		{create + "--host ,", `--host must have a DNS name or an IP address`},
		{create + "--host a --cert-name ca", `must differ from each other and from`},
		{create + "--host a --cert-name key", `must differ from each other and from`},
		{create + "--host a --rotate-before -1h", `--rotate-before must not be negative`},
		{create + "--host a --log-level loud", `invalid value "loud" of --log-level: must be panic, fatal`},
		{create + "--host a --log-format xml", `invalid value "xml" of --log-format: must be text or json`},
		{create + "--host a --kubeconfig /nowhere/config --log-format text", `level=fatal msg="create failed" err="connect to Kubernetes: stat /nowhere/config`},
		{create + "--host a more", `unknown command "more"`},
		{patch, `there is nothing to patch`},
		{patch + "--webhook-name w --patch-validating=false --patch-mutating=false", `there is nothing to patch`},
		{patch + "--webhook-name w --patch-failure-policy fail", `invalid value \"fail\" of --patch-failure-policy: must be Ignore or Fail`},
		{patch + "--webhook-name w --log-level error", `connect to Kubernetes`},
		{patch + "--apiservice-name w", `connect to Kubernetes`},
		{"nothing", `unknown command "nothing"`},
	} {
		_, logged, err := runCertgen(t, strings.Fields(c.args)...)
		var status usage.ExitStatus
		if errors.As(err, &status) && status.Status != 1 {
			t.Errorf("%s: status %d", c.args, status.Status)
		}
		if err == nil || !strings.Contains(err.Error()+logged, c.want) {
			t.Errorf("%s: %v, %s", c.args, err, logged)
		}
	}
	if _, logged, err := runCertgen(t, strings.Fields(create+"--host a --log-level panic")...); err == nil || logged != "" {
		t.Errorf("with the least log: %v, %q", err, logged)
	}
	if printed, _, err := runCertgen(t, "version"); err != nil || printed != version+"\n" {
		t.Errorf("the version: %q, %v", printed, err)
	}
}
