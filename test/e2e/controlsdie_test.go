package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// Controls are killed under load: the one that does not lead, the leader, and both. Edges serve on, get what has
// changed meanwhile, and the status is written. An edge whose container is killed while there is no control serves what it
// has kept. No request fails, but those to the killed edge.
func TestControlsDie(t *testing.T) {
	d := startDying(t)
	leader, other := d.leader()
	for _, control := range []corev1.Pod{other, leader} {
		killContainer(t, control)
		d.change()
		d.awaitChanged()
		d.awaitAgain(control.Name, 1)
	}

	for _, control := range d.release("control") {
		killContainer(t, control)
	}
	d.scaleControls(0)
	served := d.served
	d.change()
	d.loads[0].awaitMore(50)
	d.loads[0].wantNoFailure()
	killed := d.edges[0]
	killContainer(t, killed)
	d.awaitAgain(killed.Name, 1)
	d.address = killed.Status.PodIP
	d.want("http://"+d.host("web")+"/", from(served))
	if text := d.kubectl.run("logs", "-n", d.class, killed.Name); !strings.Contains(text, "serving what the control published before this start") {
		t.Errorf("the edge did not say that it serves what it has kept: %s", text)
	}
	d.loads[0] = d.loadOf(killed)

	d.scaleControls(2)
	d.awaitChanged()
	for _, l := range d.loads {
		l.awaitMore(50)
		l.wantNoFailure()
	}
}

// A dying is a release whose pods are killed, and clients of each of its two edges.
type dying struct {
	*splitRelease
	edges []corev1.Pod
	loads []*load
	// served is the endpoint that there is, changed the Ingress that came last, and changes how many came.
	served, changed string
	changes         int
}

func startDying(t *testing.T) *dying {
	t.Helper()
	d := &dying{splitRelease: newSplit(t, ""), served: "web", changed: "web"}
	d.createBackend("web")
	d.createIngress(d.ingress("web", d.host("web"), "/", "web", ""))
	d.apply("install", "--set", "controller.mode=split")
	d.edges = d.release("controller")
	d.awaitChanged()
	for _, edge := range d.edges {
		d.loads = append(d.loads, d.loadOf(edge))
	}
	return d
}

// loadOf starts clients of an edge that keep their connections, and some that do not.
func (d *dying) loadOf(edge corev1.Pod) *load {
	d.t.Helper()
	l := d.newLoad(edge.Status.PodIP)
	for _, secure := range []bool{false, true} {
		l.add(client{host: d.host("web"), secure: secure}, secure, 5*pace)
		l.add(client{host: d.host("web"), secure: secure, fresh: true}, !secure, 10*pace)
	}
	l.awaitMore(50)
	return l
}

// change replaces the endpoint, which serves on, and creates an Ingress.
func (d *dying) change() {
	d.t.Helper()
	d.changes++
	d.served, d.changed = fmt.Sprintf("endpoint-%d", d.changes), fmt.Sprintf("ingress-%d", d.changes)
	d.changeEndpoint("web", d.startEndpoint(d.served))
	d.createIngress(d.ingress(d.changed, d.host(d.changed), "/", "web", ""))
}

// awaitChanged waits until both edges serve the last change, and the status of all Ingresses is written.
func (d *dying) awaitChanged() {
	d.t.Helper()
	for _, edge := range d.edges {
		d.address = edge.Status.PodIP
		d.await("http://"+d.host("web")+"/", from(d.served))
		d.await("http://"+d.host(d.changed)+"/", from(d.served))
	}
	d.awaitShown(d.clientService().Spec.ClusterIP)
}

// leader waits until one of the controls leads.
func (d *dying) leader() (leader, other corev1.Pod) {
	d.t.Helper()
	controls := d.release("control")
	if len(controls) != 2 || len(d.edges) != 2 {
		d.t.Fatalf("there are %d controls and %d edges, want 2 and 2", len(controls), len(d.edges))
	}
	clustertest.Eventually(d.t, timeout, func(ctx context.Context) error {
		lease, err := d.cluster.Client().CoordinationV1().Leases(d.class).Get(ctx, releaseName+"-headgate-leader", metav1.GetOptions{})
		if err != nil {
			return err
		}
		leader, other = controls[0], controls[1]
		if heldByOne(lease, map[string]bool{leader.Name: true}) != nil {
			leader, other = other, leader
		}
		return heldByOne(lease, map[string]bool{leader.Name: true})
	})
	return leader, other
}

// awaitAgain waits until a pod is ready whose container was started again.
func (d *dying) awaitAgain(name string, restarts int32) {
	d.t.Helper()
	clustertest.Eventually(d.t, podTimeout, func(ctx context.Context) error {
		pod, err := d.cluster.Client().CoreV1().Pods(d.class).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := pod.Status.ContainerStatuses[0]; s.RestartCount != restarts || !s.Ready {
			return fmt.Errorf("the container of %s has started %d times again, and its state is %+v", name, s.RestartCount, s.State)
		}
		return nil
	})
}

// scaleControls waits until there are as many controls.
func (d *dying) scaleControls(number int32) {
	d.t.Helper()
	deployments := d.cluster.Client().AppsV1().Deployments(d.class)
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, number)
	if _, err := deployments.Patch(d.t.Context(), controlName, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		d.t.Fatal(err)
	}
	clustertest.Eventually(d.t, podTimeout, func(ctx context.Context) error {
		list, err := d.cluster.Client().CoreV1().Pods(d.class).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=control"})
		if err == nil && len(list.Items) != int(number) {
			err = fmt.Errorf("there are %d controls, want %d", len(list.Items), number)
		}
		return err
	})
}
