package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// TestImageChanged: the objects of ingress-nginx's chart work, with its roles and no
// more, when they get Headgate's images and nothing else changes; with
// controller.image.chroot and with controller.hostNetwork too.
func TestImageChanged(t *testing.T) {
	h := newHeadgate(t)
	h.cluster.NeedPods(t)
	h.createBackend("web")
	release := ingressNginx{h: h, fullname: h.class + "-ingress-nginx", images: headgateBuild.load(t, h.cluster)}
	t.Cleanup(release.delete)
	release.apply("before.yaml")
	h.awaitJob(release.fullname + "-admission-create")
	release.apply("controller.yaml")
	release.startVariant("chroot", release.chroot)
	release.startVariant("host", release.hostNetwork)
	controllers := []string{release.fullname, release.fullname + "-chroot", release.fullname + "-host"}
	for _, app := range controllers {
		t.Cleanup(func() {
			if t.Failed() {
				h.logPods(app)
			}
		})
	}
	for _, app := range controllers {
		h.awaitRolledOut(app + "-controller")
	}
	release.apply("after.yaml")
	h.awaitJob(release.fullname + "-admission-patch")
	clustertest.Eventually(t, timeout, h.reviewed)

	host := h.host("web")
	h.createIngress(h.ingress("web", host, "/", "web", ""))
	service := release.publish("203.0.113.7")
	h.awaitAddress(service.Spec.ClusterIP, host)
	for _, app := range controllers {
		for _, pod := range h.podsOf(app) {
			h.awaitAddress(pod.Status.PodIP, host)
		}
	}
	h.awaitShown("203.0.113.7", "web")
	lease := must[*coordinationv1.Lease](h)(h.cluster.Client().CoordinationV1().Leases(h.class).Get(t.Context(), release.fullname+"-leader", metav1.GetOptions{}))
	var pods []corev1.Pod
	for _, app := range controllers {
		pods = append(pods, h.podsOf(app)...)
	}
	if holder := *lease.Spec.HolderIdentity; !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return strings.HasPrefix(holder, p.Name) }) {
		t.Errorf("the holder of the Lease is %s, which is not a pod", holder)
	}
	for _, pod := range pods {
		h.wantNothingMissing(pod)
	}
}

// ingressNginx is a release of ingress-nginx's chart.
type ingressNginx struct {
	h        *headgate
	fullname string
	images   images
}

// manifest is one of its files, with Headgate's images.
func (r ingressNginx) manifest(file string) string {
	r.h.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/ingress-nginx", file))
	if err != nil {
		r.h.t.Fatal(err)
	}
	return strings.NewReplacer(
		"FULLNAME", r.fullname, "NAMESPACE", r.h.class, "CONTROLLER", controllerClass(r.h.class), "CLASS", r.h.class,
		"POD_NAMESPACE", "POD_NAMESPACE", "IMAGE", r.images.controller, "CERTGEN", r.images.certgen,
	).Replace(string(text))
}

func (r ingressNginx) apply(file string) {
	r.h.t.Helper()
	c := r.h.kubectl().command("kubectl", "apply", "--namespace", r.h.class, "-f", "-")
	c.Stdin = strings.NewReader(r.manifest(file))
	if out, err := c.CombinedOutput(); err != nil {
		r.h.t.Fatalf("kubectl apply %s: %v: %s", file, err, out)
	}
}

// delete deletes what is in no namespace.
func (r ingressNginx) delete() {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	client := r.h.cluster.Client()
	errs := []error{
		client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, r.fullname+"-admission", metav1.DeleteOptions{}),
		client.NetworkingV1().IngressClasses().Delete(ctx, r.h.class, metav1.DeleteOptions{}),
	}
	for _, name := range []string{r.fullname, r.fullname + "-admission"} {
		errs = append(errs,
			client.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{}),
			client.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{}))
	}
	for _, err := range errs {
		if err != nil && !apierrors.IsNotFound(err) {
			r.h.t.Error(err)
		}
	}
}

// startVariant creates another Deployment, changed as a value of the chart does.
func (r ingressNginx) startVariant(name string, change func(*corev1.PodSpec)) {
	r.h.t.Helper()
	documents := strings.Split(r.manifest("controller.yaml"), "\n---\n")
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(documents[len(documents)-1]), &d); err != nil {
		r.h.t.Fatal(err)
	}
	labels := map[string]string{"app": r.fullname + "-" + name}
	d.Name = r.fullname + "-" + name + "-controller"
	d.Spec.Selector.MatchLabels, d.Spec.Template.Labels = labels, labels
	change(&d.Spec.Template.Spec)
	must[*appsv1.Deployment](r.h)(r.h.cluster.Client().AppsV1().Deployments(r.h.class).Create(r.h.t.Context(), &d, metav1.CreateOptions{}))
}

// chroot is what controller.image.chroot changes.
func (r ingressNginx) chroot(pod *corev1.PodSpec) {
	container, yes := &pod.Containers[0], true
	container.Image = r.images.chroot
	container.SecurityContext.AllowPrivilegeEscalation = &yes
	container.SecurityContext.Capabilities.Add = append(container.SecurityContext.Capabilities.Add, "SYS_CHROOT")
}

// hostNetwork is what controller.hostNetwork changes. Only the capability lets the pod listen on
// ports 80 and 443 of the node.
func (r ingressNginx) hostNetwork(pod *corev1.PodSpec) { pod.HostNetwork = true }

// publish gives the Service the address of a load balancer.
func (r ingressNginx) publish(address string) *corev1.Service {
	r.h.t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, address)
	return must[*corev1.Service](r.h)(r.h.cluster.Client().CoreV1().Services(r.h.class).Patch(
		r.h.t.Context(), r.fullname+"-controller", types.MergePatchType, patch, metav1.PatchOptions{}, "status"))
}

// podsOf are the pods of an application.
func (h *headgate) podsOf(app string) []corev1.Pod {
	h.t.Helper()
	list := must[*corev1.PodList](h)(h.cluster.Client().CoreV1().Pods(h.class).List(h.t.Context(), metav1.ListOptions{LabelSelector: "app=" + app}))
	if len(list.Items) == 0 {
		h.t.Fatalf("%s has no pods", app)
	}
	return list.Items
}

// wantNothingMissing checks the log of a pod: it has not failed, and may do all that it wants to.
func (h *headgate) wantNothingMissing(pod corev1.Pod) {
	h.t.Helper()
	for _, status := range pod.Status.ContainerStatuses {
		if end := status.LastTerminationState.Terminated; end != nil && end.ExitCode != 0 {
			h.t.Errorf("%s ended with %d", pod.Name, end.ExitCode)
		}
	}
	log := must[[]byte](h)(h.cluster.Client().CoreV1().Pods(h.class).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(h.t.Context()))
	for line := range bytes.Lines(log) {
		for _, word := range []string{"permission", "forbidden", "LD_PRELOAD", "level=ERROR"} {
			if bytes.Contains(line, []byte(word)) {
				h.t.Errorf("%s: %s", pod.Name, line)
			}
		}
	}
}

// awaitRolledOut waits until the pods of a Deployment are ready.
func (h *headgate) awaitRolledOut(name string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), podTimeout)
	defer cancel()
	if err := h.cluster.WaitRolledOut(ctx, h.class, name); err != nil {
		h.t.Fatal(err)
	}
}
