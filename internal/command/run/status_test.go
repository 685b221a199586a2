package run

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/command/release"
)

func TestInvalidStatusFlags(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"--publish-service=a/b --publish-status-address=192.0.2.1", "mutually exclusive"},
		{"--publish-service=b", `invalid value "b" of --publish-service: must be NAMESPACE/NAME`},
		{"--publish-status-address=192.0.2.1,a_b", `invalid value of --publish-status-address: invalid address "a_b": must be an IP address or a DNS name`},
		{"--election-id=", "--disable-leader-election"},
	} {
		command := Command(release.Build{Version: "development"})
		command.SetArgs(append(strings.Fields(c.flags), "--manifests-dir=/nowhere"))
		if err := command.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: the error is %v, want one with %q", c.flags, err, c.want)
		}
	}
}

// TestCandidate: a pod has its own name; outside of pods no two processes have the
// same name.
func TestCandidate(t *testing.T) {
	options := types.NamespacedName{Namespace: "config", Name: "options"}
	for _, c := range []struct {
		pod, namespace string
		configMap      types.NamespacedName
		want           string
	}{
		{"web-1", "headgate", options, "headgate web-1"},
		{"", "headgate", options, "headgate random"},
		{"", "", options, "config random"},
		{"", "", types.NamespacedName{}, "default random"},
	} {
		t.Setenv("POD_NAME", c.pod)
		t.Setenv("POD_NAMESPACE", c.namespace)
		namespace, one, err := candidate(c.configMap)
		if err != nil {
			t.Fatal(err)
		}
		_, two, err := candidate(c.configMap)
		if err != nil {
			t.Fatal(err)
		}
		if one != two {
			one = "random"
		}
		if got := namespace + " " + one; got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
}
