package run

import (
	"context"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/command/release"
)

// TestFlagErrors: an error names the flag, the value and what is allowed.
func TestFlagErrors(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"--http-prt=8080", "unknown flag --http-prt: did you mean --http-port?"},
		{"--watch-namepsace x", "unknown flag --watch-namepsace: did you mean --watch-namespace?"},
		{"--nothing-like-it", "unknown flag --nothing-like-it"},
		{"--sort-backends", "unknown flag --sort-backends: ingress-nginx has removed it; the order of endpoints does not affect requests: remove it"},
		{"-configmap=a/b", "unknown flag -configmap=a/b: did you mean --configmap=a/b?"},
		{"-x", "unknown flag -x"},
		{"--http-port", "--http-port needs a value: a port from 1 to 65535"},
		{"--http-port=99999", `invalid value "99999" of --http-port: must be a port from 1 to 65535`},
		{"--http-port=0", `invalid value "0" of --http-port: must be a port from 1 to 65535`},
		{"--update-status=maybe", `invalid value "maybe" of --update-status: must be true or false`},
		{"--election-ttl=5", `invalid value "5" of --election-ttl: must be a duration such as 30s or 5m`},
		{"--profiler-address=here", `invalid value "here" of --profiler-address: must be an IP address`},
		{"--profiler-port=0", `invalid value "0" of --profiler-port: must be a port from 1 to 65535`},
		{"--shutdown-grace-period=1m", `invalid value "1m" of --shutdown-grace-period: must be a whole number`},
		{"--shutdown-grace-period=-1", `invalid value "-1" of --shutdown-grace-period: must be 0 or more`},
		{"--post-shutdown-grace-period=-1", `invalid value "-1" of --post-shutdown-grace-period: must be 0 or more`},
		{"--sync-rate-limit=fast", `invalid value "fast" of --sync-rate-limit: must be a number`},
		{"--sync-rate-limit=0", `invalid value "0" of --sync-rate-limit: must be greater than 0`},
		{"-v=high", `invalid value "high" of --v: must be a whole number`},
		{"-v=-1", `invalid value "-1" of --v: must be 0 or more`},
		{"--vmodule=a", `invalid value "a" of --vmodule: must be PATTERN=N, separated by commas`},
		{"--stderrthreshold=4", `invalid value "4" of --stderrthreshold: must be 0, 1, 2, 3, INFO, WARNING, ERROR or FATAL`},
		{"--log_backtrace_at=run.go", `invalid value "run.go" of --log_backtrace_at: must be FILE:LINE, such as run.go:42`},
		{"--log_file_max_size=-1", `invalid value "-1" of --log_file_max_size: must be a whole number, 0 or more`},
		{"--log_file_max_size=99999999", `invalid value "99999999" of --log_file_max_size: must be at most 1048576`},
		{"--log-format=xml", `invalid value "xml" of --log-format: must be text or json`},
		{"--log_file=/nowhere/log --logtostderr=false", "open the log: open /nowhere/log: no such file or directory"},
		{"--health-check-path=ok", `invalid value "ok" of --health-check-path: must be a path that begins with a slash`},
		{"--annotations-prefix=a/b", `invalid value "a/b" of --annotations-prefix: must be a DNS name`},
		{"--watch-namespace=a/b", `invalid value "a/b" of --watch-namespace: must be the name of a namespace`},
		{"--watch-namespace-selector=a=b=c", `invalid value "a=b=c" of --watch-namespace-selector: must be a label selector such as team=a`},
		{"--election-id=A", `invalid value "A" of --election-id: must be the name of a Lease: lower-case letters, digits, - and .`},
		{"--configmap=a", `invalid value "a" of --configmap: must be NAMESPACE/NAME`},
		{"--http-port=443", "--http-port and --https-port are both port 443: they must differ"},
		{"--http-port=10245", "--http-port and --profiler-port are both port 10245: they must differ"},
		{"--healthz-port=443", "--https-port and --healthz-port are both port 443: they must differ"},
		{"--validating-webhook=:80 --validating-webhook-certificate=c --validating-webhook-key=k", "--http-port and --validating-webhook are both port 80: they must differ"},
		{"--watch-namespace=a --watch-namespace-selector=b", "--watch-namespace and --watch-namespace-selector are mutually exclusive"},
		{"--publish-service=a/b --publish-status-address=192.0.2.1", "--publish-service and --publish-status-address are mutually exclusive"},
		{"--kubeconfig=x", "--manifests-dir and --kubeconfig are mutually exclusive: one is for a folder, the other for a cluster"},
		{"--apiserver-host=x", "--manifests-dir and --apiserver-host are mutually exclusive: one is for a folder, the other for a cluster"},
		{"--http-port=8080 --profiling=false --profiler-port=8080", "/nowhere"},
	} {
		command := Command(release.Build{Version: "development"})
		command.SetArgs(append([]string{"--manifests-dir=/nowhere"}, strings.Fields(c.flags)...))
		err := command.ExecuteContext(context.Background())
		if err == nil || err.Error() != c.want && (c.want != "/nowhere" || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: the error is\n%v, want\n%s", c.flags, err, c.want)
		}
	}
}
