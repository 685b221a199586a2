package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// In a container with a read-only root, Headgate and users write in a few folders alone, and
// the first process reaps the processes that others leave, and passes signals on.
func TestContainer(t *testing.T) {
	h := newHeadgate(t)
	h.cluster.NeedPods(t)
	h.createClass(h.class, controllerClass(h.class))
	h.createBackend("web")
	host := h.host("web")
	h.createIngress(h.ingress("web", host, "/", "web", ""))
	address := h.runInPods(inPods{replicas: 1})
	h.awaitAddress(address, host)
	t.Cleanup(func() {
		if t.Failed() {
			h.logPods("headgate")
		}
	})
	k := h.kubectl()
	shell := func(script string) string {
		t.Helper()
		return k.run("exec", "-n", h.class, "deployment/headgate", "--", "sh", "-c", script)
	}

	k.wantOutput([]string{"exec", "-n", h.class, "deployment/headgate", "--", "cat", "/etc/nginx/nginx.conf"}, "worker_processes")
	writes := "for f in / /bin /etc /etc/nginx /usr/bin /var /var/log/nginx /tmp /etc/ingress-controller /run; do " +
		"if touch $f/file 2>&1; then echo $f written; fi; done"
	got := shell(writes)
	for _, dir := range []string{"/tmp", "/etc/ingress-controller", "/run"} {
		if !strings.Contains(got, "\n"+dir+" written\n") {
			t.Errorf("%s can't be written: %s", dir, got)
		}
	}
	if n := strings.Count(got, "Read-only file system"); n != 7 {
		t.Errorf("%d folders are read-only, want 7: %s", n, got)
	}

	// The process is left by its parent, and ends.
	shell("(sleep 0.1 &)")
	clustertest.Eventually(t, timeout, func(context.Context) error {
		if list := shell("grep -h '^State' /proc/[0-9]*/status; grep -h '^Name' /proc/[0-9]*/status"); strings.Contains(list, "zombie") || strings.Contains(list, "Name:\tsleep\n") {
			return fmt.Errorf("a process is not reaped: %s", list)
		}
		return nil
	})

	shell("kill -TERM 1")
	clustertest.Eventually(t, podTimeout, func(ctx context.Context) error {
		list, err := h.cluster.Client().CoreV1().Pods(h.class).List(ctx, metav1.ListOptions{LabelSelector: "app=headgate"})
		if err != nil || len(list.Items) != 1 {
			return fmt.Errorf("listing pods: %v", err)
		}
		for _, status := range list.Items[0].Status.ContainerStatuses {
			last := status.LastTerminationState.Terminated
			if last == nil || !status.Ready {
				return fmt.Errorf("the container did not end and start again: %+v", status.State)
			}
			if last.ExitCode != 0 {
				t.Errorf("the container ended with %d", last.ExitCode)
			}
		}
		return nil
	})
	k.wantOutput([]string{"logs", "-n", h.class, "deployment/headgate", "--previous"}, "shutting down")
	h.awaitAddress(address, host)
}
