package run

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/command/option"
	"github.com/headgate/headgate/internal/command/selection"
)

// TestWithoutPod: in a Pod, its name and namespace should be known.
func TestWithoutPod(t *testing.T) {
	for _, c := range []struct {
		namespace, name, kubeconfig string
		warns                       bool
	}{{"headgate", "here", "", false}, {"", "here", "", true}, {"headgate", "", "", true}, {"", "", "", true}, {"", "", "config", false}} {
		t.Setenv("POD_NAMESPACE", c.namespace)
		t.Setenv("POD_NAME", c.name)
		var log bytes.Buffer
		program{Options: option.Options{Flags: selection.Flags{Cluster: selection.Cluster{Kubeconfig: c.kubeconfig}}}}.warnWithoutPod(slog.New(slog.NewTextHandler(&log, nil)))
		if strings.Contains(log.String(), "POD_NAME and POD_NAMESPACE") != c.warns {
			t.Errorf("%+v: log %q", c, log.String())
		}
	}
}

// TestOwnPod: topology hints need the name of the Pod, and warn without it.
func TestOwnPod(t *testing.T) {
	for _, c := range []struct {
		topology              bool
		namespace, name, want string
		warns                 bool
	}{
		{true, "headgate", "here", "headgate/here", false},
		{true, "", "here", "/", true},
		{true, "headgate", "", "/", true},
		{false, "headgate", "here", "/", false},
		{false, "", "", "/", false},
	} {
		t.Setenv("POD_NAMESPACE", c.namespace)
		t.Setenv("POD_NAME", c.name)
		var log bytes.Buffer
		o := program{Options: option.Options{Topology: c.topology}}
		got := o.ownPod(slog.New(slog.NewTextHandler(&log, nil)))
		if got.String() != c.want || strings.Contains(log.String(), "topology hints are ignored") != c.warns {
			t.Errorf("%+v: got %s, log %q", c, got, log.String())
		}
	}
}

// TestOwnPodOfControl: a control ignores topology hints, and says so.
func TestOwnPodOfControl(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "headgate")
	t.Setenv("POD_NAME", "here")
	for flags, warns := range map[string]bool{"": false, "--enable-topology-aware-routing": true} {
		var o program
		control(flags)(&o)
		var log bytes.Buffer
		got := o.ownPod(slog.New(slog.NewTextHandler(&log, nil)))
		if got.Name != "" || strings.Contains(log.String(), "has no effect in a control") != warns {
			t.Errorf("%q: got %s, log %q", flags, got, log.String())
		}
	}
}
