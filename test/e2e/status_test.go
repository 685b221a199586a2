package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// leaseTime is how long the Lease of these tests is valid.
const leaseTime = 3 * time.Second

// newReplica makes an instance that writes an address into its Ingresses, like a
// pod with that name.
func newReplica(t *testing.T, name, address string, flags ...string) *headgate {
	t.Helper()
	h := newHeadgate(t, append([]string{
		"--publish-status-address", address, "--election-ttl", leaseTime.String(), "--status-update-interval", "5",
	}, flags...)...)
	h.env = []string{"POD_NAMESPACE=" + h.class, "POD_NAME=" + name}
	h.createClass(h.class, controllerClass(h.class))
	return h
}

// replica makes another instance for the same Ingresses, on other ports of the
// node.
func (h *headgate) replica(name, address string) *headgate {
	h.t.Helper()
	other := *h
	dir, err := os.MkdirTemp("", "headgate-e2e-")
	if err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		h.t.Fatal(err)
	}
	other.dir, other.cmd, other.env = dir, nil, []string{"POD_NAMESPACE=" + h.class, "POD_NAME=" + name}
	other.args = append(slices.Clone(h.args), "--run-dir", filepath.Join(dir, "run"),
		"--http-port", "8080", "--https-port", "8443", "--healthz-port", "10255", "--profiling=false", "--default-server-port", "0", "--status-port", "0", "--publish-status-address", address)
	h.t.Cleanup(other.leave)
	return &other
}

// createIngresses creates Ingresses of the test's class.
func (h *headgate) createIngresses(prefix string, n int) {
	h.t.Helper()
	h.times(n, func(ctx context.Context, number int) error {
		name := fmt.Sprintf("%s-%d", prefix, number)
		_, err := h.cluster.Client().NetworkingV1().Ingresses(h.class).Create(ctx, h.ingress(name, h.host(name), "/", "web", ""), metav1.CreateOptions{})
		return err
	})
}

// A shown has an Ingress's addresses and version.
type shown struct{ addresses, version string }

// shown returns the addresses of all Ingresses of the test.
func (h *headgate) shown(ctx context.Context) (map[string]shown, error) {
	list, err := h.cluster.Client().NetworkingV1().Ingresses(h.class).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := map[string]shown{}
	for _, ing := range list.Items {
		var words []string
		for _, e := range ing.Status.LoadBalancer.Ingress {
			words = append(words, e.IP+e.Hostname)
		}
		all[ing.Name] = shown{strings.Join(words, ","), ing.ResourceVersion}
	}
	return all, nil
}

// awaitShown waits until the Ingresses show the addresses, all if none is
// named.
func (h *headgate) awaitShown(addresses string, names ...string) map[string]shown {
	h.t.Helper()
	var all map[string]shown
	clustertest.Eventually(h.t, 2*timeout, func(ctx context.Context) error {
		var err error
		if all, err = h.shown(ctx); err != nil {
			return err
		}
		for name, s := range all {
			if s.addresses != addresses && (len(names) == 0 || slices.Contains(names, name)) {
				return fmt.Errorf("%s shows %q, want %q", name, s.addresses, addresses)
			}
		}
		return nil
	})
	return all
}

// overwrite puts an address into the status of an Ingress.
func (h *headgate) overwrite(name, address string) {
	h.t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, address)
	must[*networkingv1.Ingress](h)(h.cluster.Client().NetworkingV1().Ingresses(h.class).Patch(
		h.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"))
}

// wantUntouched fails the test if an Ingress has another version than before.
func (h *headgate) wantUntouched(before map[string]shown, but ...string) {
	h.t.Helper()
	now := must[map[string]shown](h)(h.shown(h.t.Context()))
	for _, name := range but {
		delete(now, name)
		delete(before, name)
	}
	if !maps.Equal(before, now) {
		h.t.Errorf("the Ingresses are %v, and were %v", now, before)
	}
}

// awaitLeader waits until the controller leads.
func (h *headgate) awaitLeader() {
	h.t.Helper()
	clustertest.Eventually(h.t, 2*timeout, func(context.Context) error {
		if h.counts("headgate_leader")["headgate_leader"] != 1 {
			return fmt.Errorf("%s does not lead", h.env)
		}
		return nil
	})
}

// The addresses are written into a new Ingress, written again when they were
// overwritten, and removed when the controller ends. Nothing else is written, no
// unit is built, and foreign Ingresses don't change.
func TestStatus(t *testing.T) {
	h := newReplica(t, "", "192.0.2.10")
	const all = "192.0.2.10"
	h.createBackend("web")
	h.createIngress(h.ingress("before", h.host("before"), "/", "web", ""))
	foreign, unknown := h.ingress("foreign", h.host("foreign"), "/", "web", ""), "unknown"
	foreign.Spec.IngressClassName = &unknown
	h.createIngress(foreign)
	h.overwrite("foreign", "192.0.2.99")
	h.start()
	h.awaitReady()
	h.awaitShown(all, "before")
	began := time.Now()
	h.createIngress(h.ingress("after", h.host("after"), "/", "web", ""))
	h.awaitShown(all, "after")
	t.Logf("a new Ingress shows its addresses after %v", time.Since(began).Round(time.Millisecond))

	quiet := h.awaitShown(all, "before", "after")
	work := h.work()
	h.overwrite("after", "192.0.2.99")
	h.awaitShown(all, "after")
	h.wantUntouched(quiet, "after")
	h.wantWork(work, counts{})

	// With another class it is not Headgate's any more.
	moved := h.ingress("after", h.host("after"), "/", "web", "")
	moved.Spec.IngressClassName = &unknown
	h.updateIngress(moved)
	h.await("http://"+h.host("after")+"/", status(http.StatusNotFound))
	h.stop()
	h.awaitShown("", "before")
	h.awaitShown(all, "after")
	h.awaitShown("192.0.2.99", "foreign")
}

// Without --update-status-on-shutdown the addresses stay. With
// --update-status=false they are never written or removed.
func TestStatusStays(t *testing.T) {
	h := newReplica(t, "", "192.0.2.10", "--update-status-on-shutdown=false")
	h.createBackend("web")
	h.createIngress(h.ingress("old", h.host("old"), "/", "web", ""))
	h.start()
	h.awaitReady()
	before := h.awaitShown("192.0.2.10")
	h.stop()
	h.wantUntouched(before)

	for _, flag := range []string{"--update-status=false", "--disable-leader-election"} {
		h.args = append(h.args, "--update-status-on-shutdown", "--update-status", "--publish-status-address=192.0.2.11", flag)
		h.start()
		h.awaitReady()
		if flag == "--update-status=false" {
			h.awaitLeader()
		}
		h.createIngress(h.ingress("new", h.host("new"), "/", "web", ""))
		h.await("http://"+h.host("new")+"/", from("web"))
		h.stop()
		h.awaitShown("", "new")
		h.deleteIngress("new")
		h.wantUntouched(before)
	}
}

// When the leader is killed, another one writes as soon as the Lease has expired.
func TestLeaderKilled(t *testing.T) {
	h := newReplica(t, "one", "192.0.2.10")
	// The test kills or stops the process alone.
	h.asProcess()
	h.createBackend("web")
	h.createIngresses("web", 10)
	h.start()
	h.awaitReady()
	h.awaitShown("192.0.2.10")
	other := h.replica("two", "192.0.2.11")
	other.start()
	other.awaitLog("msg=leader", "is=one")
	other.awaitLog("msg=serving")

	began := time.Now()
	h.kill()
	h.createIngress(h.ingress("late", h.host("late"), "/", "web", ""))
	h.awaitShown("192.0.2.11")
	took := time.Since(began)
	t.Logf("with a Lease of %v, another one has written %v after the leader was killed", leaseTime, took.Round(time.Millisecond))
	// It reads the Lease each 0.25 to 0.55 of leaseTime, and may have read it just
	// before the last renewal. The rest is for a slow machine.
	if limit := 4 * leaseTime; took > limit {
		t.Errorf("it took %v, want at most %v", took, limit)
	}
}

// A leader that is paused amid its writes, for longer than the Lease is valid,
// writes nothing when it goes on: the addresses of the next leader stay. When
// that one ends, the first one leads again.
func TestLeaderPaused(t *testing.T) {
	// So slow that it is stopped long before it has written all.
	h := newReplica(t, "one", "192.0.2.10", "--kube-api-qps", "20")
	// The test kills or stops the process alone.
	h.asProcess()
	h.createBackend("web")
	h.createIngresses("web", 100)
	h.start()
	h.awaitReady()
	clustertest.Eventually(t, timeout, func(ctx context.Context) error {
		if n := h.showing(ctx, "192.0.2.10"); n < 5 {
			return fmt.Errorf("%d Ingresses are written", n)
		}
		return nil
	})
	if err := h.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goOn := func() { _ = h.cmd.Process.Signal(syscall.SIGCONT) }
	defer goOn()

	other := h.replica("two", "192.0.2.11")
	other.args = append(other.args, "--kube-api-qps", "500", "--update-status-on-shutdown=false")
	other.start()
	before := h.awaitShown("192.0.2.11")
	goOn()
	h.awaitLog("msg=leader", "is=two")
	h.wantUntouched(before)
	h.awaitReady()
	other.stop()
	clustertest.Eventually(t, timeout, func(ctx context.Context) error {
		if h.showing(ctx, "192.0.2.10") == 0 {
			return fmt.Errorf("the first one does not write again")
		}
		return nil
	})
}

// showing is the number of Ingresses that show just these addresses.
func (h *headgate) showing(ctx context.Context, addresses string) (n int) {
	h.t.Helper()
	for _, s := range must[map[string]shown](h)(h.shown(ctx)) {
		if s.addresses == addresses {
			n++
		}
	}
	return n
}

// Without flags for them, the addresses are those of the nodes with ready
// replicas.
func TestStatusOfNodes(t *testing.T) {
	h := newReplica(t, "one", "")
	h.createNode(h.class+"-a", "192.0.2.30", "10.1.0.1")
	h.createNode(h.class+"-b", "192.0.2.31", "10.1.0.2")
	h.createReadyPod("one", h.class+"-a", "headgate")
	h.createReadyPod("two", h.class+"-b", "headgate")
	h.createReadyPod("other", h.class+"-b", "else")
	h.createBackend("web")
	h.createIngress(h.ingress("web", h.host("web"), "/", "web", ""))
	h.start()
	h.awaitReady()
	h.awaitShown("192.0.2.30,192.0.2.31")
	pods := h.cluster.Client().CoreV1().Pods(h.class)
	now := int64(0)
	if err := pods.Delete(t.Context(), "two", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	h.awaitShown("192.0.2.30")
	h.stop()
	h.awaitShown("")
	h.args = append(h.args, "--report-node-internal-ip-address")
	h.start()
	h.awaitShown("10.1.0.1")
}

// createNode creates a Node without a machine.
func (h *headgate) createNode(name, external, internal string) {
	h.t.Helper()
	nodes := h.cluster.Client().CoreV1().Nodes()
	must[*corev1.Node](h)(nodes.Create(h.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))
	h.t.Cleanup(func() { _ = nodes.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	patch := fmt.Appendf(nil, `{"status":{"addresses":[{"type":"InternalIP","address":%q},{"type":"ExternalIP","address":%q}]}}`, internal, external)
	must[*corev1.Node](h)(nodes.Patch(h.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"))
}

// createReadyPod creates a pod on a node of createNode. It does not run; only its
// status says that it is ready.
func (h *headgate) createReadyPod(name, node, app string) *corev1.Pod {
	h.t.Helper()
	pods := h.cluster.Client().CoreV1().Pods(h.class)
	pod := must[*corev1.Pod](h)(pods.Create(h.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app, "pod-template-hash": name}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "none", Image: "none.invalid/none"}}},
	}, metav1.CreateOptions{}))
	// The node has no kubelet to end it.
	h.t.Cleanup(func() {
		now := int64(0)
		_ = pods.Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	})
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	return must[*corev1.Pod](h)(pods.UpdateStatus(h.t.Context(), pod, metav1.UpdateOptions{}))
}

// The status step of the conformance scenarios (test/dataplane has the others):
// each of their kinds of Ingress gets an address, and an Ingress of an unknown
// class does not.
func TestConformanceStatus(t *testing.T) {
	h := newReplica(t, "", "192.0.2.10")
	h.createBackend("web")
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: "web", Port: networkingv1.ServiceBackendPort{Name: "http"},
	}}
	catchAll := h.ingress("catch-all", "", "/", "web", "")
	catchAll.Spec.Rules, catchAll.Spec.DefaultBackend = nil, &backend
	hosts := h.ingress("hosts", h.host("tls"), "/", "web", "absent")
	wildcard := hosts.Spec.Rules[0].DeepCopy()
	wildcard.Host = "*." + h.host("wild")
	wildcard.HTTP.Paths[0].Backend = backend
	hosts.Spec.Rules = append(hosts.Spec.Rules, *wildcard)
	paths := h.ingress("paths", h.host("paths"), "/foo", "web", "")
	exact := networkingv1.PathTypeExact
	paths.Spec.Rules[0].HTTP.Paths[0].PathType = &exact
	foreign, unknown := h.ingress("foreign", h.host("foreign"), "/", "web", ""), "some-invalid-class-name"
	foreign.Spec.IngressClassName = &unknown
	for _, ing := range []*networkingv1.Ingress{foreign, catchAll, hosts, paths} {
		h.createIngress(ing)
	}
	h.start()
	h.awaitReady()
	h.awaitShown("192.0.2.10", "catch-all", "hosts", "paths")
	h.awaitShown("", "foreign")
}
