package run

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/command/option"
	"github.com/headgate/headgate/internal/command/release"
)

// TestInvalidFlags: invalid values are rejected before anything starts.
func TestInvalidFlags(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, c := range []struct{ flags, want string }{
		{"", "not running in a Pod"},
		{"--manifests-dir . --validating-webhook :8443", "requires --validating-webhook-certificate and --validating-webhook-key"},
		{"--manifests-dir . --validating-webhook :8443 --webhook-self-signed", "--webhook-self-signed keeps the certificate in a cluster, and --manifests-dir"},
		{"--validating-webhook :8443 --webhook-self-signed --validating-webhook-certificate c", "--webhook-self-signed and --validating-webhook-certificate are mutually exclusive"},
		{"--validating-webhook :8443 --webhook-self-signed --validating-webhook-key k", "--webhook-self-signed and --validating-webhook-key are mutually exclusive"},
		{"--webhook-self-signed", "--webhook-self-signed requires --validating-webhook"},
		{"--webhook-secret a/b", "--webhook-secret require --webhook-self-signed"},
		{"--validating-webhook :8443 --webhook-self-signed --webhook-secret b", `invalid value "b" of --webhook-secret: must be NAMESPACE/NAME`},
		{"--validating-webhook :8443 --webhook-self-signed --webhook-service b", `invalid value "b" of --webhook-service: must be NAMESPACE/NAME`},
		{"--validating-webhook :8443 --webhook-self-signed --webhook-configuration=", `invalid value "" of --webhook-configuration`},
		{"--manifests-dir . --validating-webhook 8443 --validating-webhook-certificate c --validating-webhook-key k", "must be HOST:PORT or :PORT"},
		{"--manifests-dir . --validating-webhook :443 --validating-webhook-certificate c --validating-webhook-key k", "--https-port and --validating-webhook are both port 443"},
		{"--manifests-dir . --http-port 0", `invalid value "0" of --http-port`},
		{"--manifests-dir . --status-port 443", "--https-port and --status-port are both port 443: they must differ"},
		{"--manifests-dir . --status-port 8181", "--default-server-port and --status-port are both port 8181"},
		{"--manifests-dir . --default-server-port 10254", "--healthz-port and --default-server-port are both"},
		{"--manifests-dir . --default-server-port 65536", "--default-server-port"},
		{"--manifests-dir . --health-check-timeout 0", `invalid value "0" of --health-check-timeout`},
		{"--manifests-dir . --health-check-path healthz", "a path that begins with a slash"},
		{"--manifests-dir . --kubeconfig x", "--manifests-dir and --kubeconfig"},
		{"--manifests-dir . --apiserver-host http://127.0.0.1", "--manifests-dir and --apiserver-host"},
		{"--certificate-authority ca.crt", "requires --apiserver-host"},
		{"--apiserver-host https://127.0.0.1 --certificate-authority /nowhere/ca.crt", "read the certificate authority"},
		{"--kubeconfig /nowhere/config", "/nowhere/config"},
		{"--apiserver-host http://127.0.0.1 --kube-api-qps 0", `invalid value "0" of --kube-api-qps: must be greater than 0`},
		{"--apiserver-host http://127.0.0.1 --kube-api-burst -1", `invalid value "-1" of --kube-api-burst: must be greater than 0`},
		{"--configmap options --manifests-dir .", "must be NAMESPACE/NAME"},
		{"--manifests-dir /nowhere", "manifests folder"},
	} {
		command := Command(release.Build{Version: "development"})
		command.SetArgs(strings.Fields(c.flags))
		if err := command.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: the error is %v, want one with %q", c.flags, err, c.want)
		}
	}
}

// TestSyncRateLimit: the flag counts only if it is set.
func TestSyncRateLimit(t *testing.T) {
	for _, c := range []struct {
		rate    float32
		limited bool
		want    time.Duration
	}{{0.3, false, 2 * time.Second}, {0.5, true, 2 * time.Second}, {0.25, true, 4 * time.Second}, {10, true, 100 * time.Millisecond}} {
		if got := (program{Options: option.Options{SyncRateLimit: c.rate}}).reloadTiming(c.limited).ReloadInterval; got.Round(time.Millisecond) != c.want {
			t.Errorf("%v, set %v: %v, want %v", c.rate, c.limited, got, c.want)
		}
	}
}
