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

// leaseTime is how long the Lease of these tests counts.
const leaseTime = 3 * time.Second

// newReplica makes a Headgate that writes an address into its Ingresses, as a
// pod of that name would.
func newReplica(t *testing.T, name, address string, flags ...string) *gate {
	t.Helper()
	g := newGate(t, append([]string{
		"--publish-status-address", address, "--election-ttl", leaseTime.String(), "--status-update-interval", "5",
	}, flags...)...)
	g.env = []string{"POD_NAMESPACE=" + g.class, "POD_NAME=" + name}
	g.createClass(g.class, controllerClass(g.class))
	return g
}

// replica makes another Headgate for the same Ingresses, on other ports of the
// node.
func (g *gate) replica(name, address string) *gate {
	g.t.Helper()
	other := *g
	dir, err := os.MkdirTemp("", "headgate-e2e-")
	if err != nil {
		g.t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		g.t.Fatal(err)
	}
	other.dir, other.cmd, other.env = dir, nil, []string{"POD_NAMESPACE=" + g.class, "POD_NAME=" + name}
	other.args = append(slices.Clone(g.args), "--run-dir", filepath.Join(dir, "run"),
		"--http-port", "8080", "--https-port", "8443", "--healthz-port", "10255", "--publish-status-address", address)
	g.t.Cleanup(other.leave)
	return &other
}

// createIngresses creates Ingresses of the gate's class.
func (g *gate) createIngresses(prefix string, n int) {
	g.t.Helper()
	g.times(n, func(ctx context.Context, number int) error {
		name := fmt.Sprintf("%s-%d", prefix, number)
		_, err := g.cluster.Client().NetworkingV1().Ingresses(g.class).Create(ctx, g.ingress(name, g.host(name), "/", "web", ""), metav1.CreateOptions{})
		return err
	})
}

// A shown is an Ingress's addresses, and its version.
type shown struct{ addresses, version string }

// shown are all Ingresses of the test.
func (g *gate) shown(ctx context.Context) (map[string]shown, error) {
	list, err := g.cluster.Client().NetworkingV1().Ingresses(g.class).List(ctx, metav1.ListOptions{})
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
func (g *gate) awaitShown(addresses string, names ...string) map[string]shown {
	g.t.Helper()
	var all map[string]shown
	clustertest.Eventually(g.t, 2*patience, func(ctx context.Context) error {
		var err error
		if all, err = g.shown(ctx); err != nil {
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
func (g *gate) overwrite(name, address string) {
	g.t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, address)
	must[*networkingv1.Ingress](g)(g.cluster.Client().NetworkingV1().Ingresses(g.class).Patch(
		g.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"))
}

// wantUntouched fails the test if an Ingress has another version than before.
func (g *gate) wantUntouched(before map[string]shown, but ...string) {
	g.t.Helper()
	now := must[map[string]shown](g)(g.shown(g.t.Context()))
	for _, name := range but {
		delete(now, name)
		delete(before, name)
	}
	if !maps.Equal(before, now) {
		g.t.Errorf("the Ingresses are %v, and were %v", now, before)
	}
}

// awaitLeader waits until the controller leads.
func (g *gate) awaitLeader() {
	g.t.Helper()
	clustertest.Eventually(g.t, 2*patience, func(context.Context) error {
		if g.counts("headgate_leader")["headgate_leader"] != 1 {
			return fmt.Errorf("%s does not lead", g.env)
		}
		return nil
	})
}

// The addresses come with the Ingress, come back when somebody else changes
// them, and go with the controller; nothing else is written, nothing of it
// builds a unit, and foreign Ingresses are left alone.
func TestStatus(t *testing.T) {
	g := newReplica(t, "", "192.0.2.10")
	const all = "192.0.2.10"
	g.createBackend("web")
	g.createIngress(g.ingress("before", g.host("before"), "/", "web", ""))
	foreign, nobody := g.ingress("foreign", g.host("foreign"), "/", "web", ""), "nobody"
	foreign.Spec.IngressClassName = &nobody
	g.createIngress(foreign)
	g.overwrite("foreign", "192.0.2.99")
	g.start()
	g.awaitReady()
	g.awaitShown(all, "before")
	began := time.Now()
	g.createIngress(g.ingress("after", g.host("after"), "/", "web", ""))
	g.awaitShown(all, "after")
	t.Logf("a new Ingress shows its addresses after %v", time.Since(began).Round(time.Millisecond))

	quiet := g.awaitShown(all, "before", "after")
	work := g.work()
	g.overwrite("after", "192.0.2.99")
	g.awaitShown(all, "after")
	g.wantUntouched(quiet, "after")
	g.wantWork(work, counts{})

	// Of another class it is somebody else's.
	moved := g.ingress("after", g.host("after"), "/", "web", "")
	moved.Spec.IngressClassName = &nobody
	g.updateIngress(moved)
	g.await("http://"+g.host("after")+"/", status(http.StatusNotFound))
	g.stop()
	g.awaitShown("", "before")
	g.awaitShown(all, "after")
	g.awaitShown("192.0.2.99", "foreign")
}

// Without --update-status-on-shutdown the addresses stay, and with
// --update-status=false nobody writes, neither then nor at the end.
func TestStatusStays(t *testing.T) {
	g := newReplica(t, "", "192.0.2.10", "--update-status-on-shutdown=false")
	g.createBackend("web")
	g.createIngress(g.ingress("old", g.host("old"), "/", "web", ""))
	g.start()
	g.awaitReady()
	before := g.awaitShown("192.0.2.10")
	g.stop()
	g.wantUntouched(before)

	for _, flag := range []string{"--update-status=false", "--disable-leader-election"} {
		g.args = append(g.args, "--update-status-on-shutdown", "--update-status", "--publish-status-address=192.0.2.11", flag)
		g.start()
		g.awaitReady()
		if flag == "--update-status=false" {
			g.awaitLeader()
		}
		g.createIngress(g.ingress("new", g.host("new"), "/", "web", ""))
		g.await("http://"+g.host("new")+"/", from("web"))
		g.stop()
		g.awaitShown("", "new")
		g.deleteIngress("new")
		g.wantUntouched(before)
	}
}

// When the leader is killed another one writes as soon as the Lease is over.
func TestLeaderKilled(t *testing.T) {
	g := newReplica(t, "one", "192.0.2.10")
	g.createBackend("web")
	g.createIngresses("web", 10)
	g.start()
	g.awaitReady()
	g.awaitShown("192.0.2.10")
	other := g.replica("two", "192.0.2.11")
	other.start()
	other.awaitLog("msg=leader", "is=one")
	other.awaitLog("msg=serving")

	began := time.Now()
	g.kill()
	g.createIngress(g.ingress("late", g.host("late"), "/", "web", ""))
	g.awaitShown("192.0.2.11")
	took := time.Since(began)
	t.Logf("with a Lease of %v, another one has written %v after the leader was killed", leaseTime, took.Round(time.Millisecond))
	// It looks each 0.25 to 0.55 of the Lease, and may have looked just before
	// the Lease was renewed for the last time. The rest is for a slow machine.
	if most := 4 * leaseTime; took > most {
		t.Errorf("it took %v, want at most %v", took, most)
	}
}

// A leader that was stopped in the middle of its writes, for longer than the
// Lease counts, writes nothing when it goes on: what the next leader wrote
// stays. When that one leaves, it leads again.
func TestLeaderPaused(t *testing.T) {
	// So slow that it is stopped long before it has written all.
	g := newReplica(t, "one", "192.0.2.10", "--kube-api-qps", "20")
	g.createBackend("web")
	g.createIngresses("web", 100)
	g.start()
	g.awaitReady()
	clustertest.Eventually(t, patience, func(ctx context.Context) error {
		if n := g.showing(ctx, "192.0.2.10"); n < 5 {
			return fmt.Errorf("%d Ingresses are written", n)
		}
		return nil
	})
	if err := g.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goOn := func() { _ = g.cmd.Process.Signal(syscall.SIGCONT) }
	defer goOn()

	other := g.replica("two", "192.0.2.11")
	other.args = append(other.args, "--kube-api-qps", "500", "--update-status-on-shutdown=false")
	other.start()
	before := g.awaitShown("192.0.2.11")
	goOn()
	g.awaitLog("msg=leader", "is=two")
	g.wantUntouched(before)
	g.awaitReady()
	other.stop()
	clustertest.Eventually(t, patience, func(ctx context.Context) error {
		if g.showing(ctx, "192.0.2.10") == 0 {
			return fmt.Errorf("the first one does not write again")
		}
		return nil
	})
}

// showing is the number of Ingresses that show just these addresses.
func (g *gate) showing(ctx context.Context, addresses string) (n int) {
	g.t.Helper()
	for _, s := range must[map[string]shown](g)(g.shown(ctx)) {
		if s.addresses == addresses {
			n++
		}
	}
	return n
}

// Without another word the addresses are those of the nodes on which replicas
// are ready.
func TestStatusOfNodes(t *testing.T) {
	g := newReplica(t, "one", "")
	g.createNode(g.class+"-a", "192.0.2.30", "10.1.0.1")
	g.createNode(g.class+"-b", "192.0.2.31", "10.1.0.2")
	g.createReadyPod("one", g.class+"-a", "gate")
	g.createReadyPod("two", g.class+"-b", "gate")
	g.createReadyPod("other", g.class+"-b", "else")
	g.createBackend("web")
	g.createIngress(g.ingress("web", g.host("web"), "/", "web", ""))
	g.start()
	g.awaitReady()
	g.awaitShown("192.0.2.30,192.0.2.31")
	pods := g.cluster.Client().CoreV1().Pods(g.class)
	now := int64(0)
	if err := pods.Delete(t.Context(), "two", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	g.awaitShown("192.0.2.30")
	g.stop()
	g.awaitShown("")
	g.args = append(g.args, "--report-node-internal-ip-address")
	g.start()
	g.awaitShown("10.1.0.1")
}

// createNode creates a Node that is no machine.
func (g *gate) createNode(name, external, internal string) {
	g.t.Helper()
	nodes := g.cluster.Client().CoreV1().Nodes()
	must[*corev1.Node](g)(nodes.Create(g.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}))
	g.t.Cleanup(func() { _ = nodes.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	patch := fmt.Appendf(nil, `{"status":{"addresses":[{"type":"InternalIP","address":%q},{"type":"ExternalIP","address":%q}]}}`, internal, external)
	must[*corev1.Node](g)(nodes.Patch(g.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"))
}

// createReadyPod creates a pod on a node of createNode, ready by word alone.
func (g *gate) createReadyPod(name, node, app string) *corev1.Pod {
	g.t.Helper()
	pods := g.cluster.Client().CoreV1().Pods(g.class)
	pod := must[*corev1.Pod](g)(pods.Create(g.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app, "pod-template-hash": name}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "none", Image: "none.invalid/none"}}},
	}, metav1.CreateOptions{}))
	// Nobody else would end it.
	g.t.Cleanup(func() {
		now := int64(0)
		_ = pods.Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	})
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	return must[*corev1.Pod](g)(pods.UpdateStatus(g.t.Context(), pod, metav1.UpdateOptions{}))
}

// The step of the conformance scenarios (test/dataplane has the others) that
// asks for a status: each of their kinds of Ingress shows an address, and one of
// a class that nobody has does not.
func TestConformanceStatus(t *testing.T) {
	g := newReplica(t, "", "192.0.2.10")
	g.createBackend("web")
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: "web", Port: networkingv1.ServiceBackendPort{Name: "http"},
	}}
	catchAll := g.ingress("catch-all", "", "/", "web", "")
	catchAll.Spec.Rules, catchAll.Spec.DefaultBackend = nil, &backend
	hosts := g.ingress("hosts", g.host("tls"), "/", "web", "absent")
	wildcard := hosts.Spec.Rules[0].DeepCopy()
	wildcard.Host = "*." + g.host("wild")
	wildcard.HTTP.Paths[0].Backend = backend
	hosts.Spec.Rules = append(hosts.Spec.Rules, *wildcard)
	paths := g.ingress("paths", g.host("paths"), "/foo", "web", "")
	exact := networkingv1.PathTypeExact
	paths.Spec.Rules[0].HTTP.Paths[0].PathType = &exact
	foreign, nobody := g.ingress("foreign", g.host("foreign"), "/", "web", ""), "some-invalid-class-name"
	foreign.Spec.IngressClassName = &nobody
	for _, ing := range []*networkingv1.Ingress{foreign, catchAll, hosts, paths} {
		g.createIngress(ing)
	}
	g.start()
	g.awaitReady()
	g.awaitShown("192.0.2.10", "catch-all", "hosts", "paths")
	g.awaitShown("", "foreign")
}
