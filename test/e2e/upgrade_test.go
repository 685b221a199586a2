package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// TestUpgradeDocument runs the commands of docs/upgrade.md, under load. Headgate's image with
// the name of ingress-nginx's, and Headgate's chart with the names, values and roles of
// ingress-nginx's, stand for ingress-nginx. So this shows that the commands work, that names,
// addresses, the webhook, the Lease and the status are handed over from one release to the
// other, and that no request is lost between them. It does not show how a pod of ingress-nginx
// ends.
func TestUpgradeDocument(t *testing.T) {
	u := newUpgrade(t)
	u.install()
	u.createIngress(u.web())
	address := u.address("ingress-nginx")
	u.awaitAddress(address, u.host("web"))
	u.awaitStatus(address)
	u.unwatch = u.watchStatus("web")
	l := u.startClients(address)
	u.wantHandedOver(ingressNginxImage)

	u.run("Before you begin", 0, "[OldPrefix]", "0 errors, 1 notice in")
	u.run("Before you begin", 1, "STATUS: deployed")
	u.run("Another image", 0, "STATUS: deployed")
	u.wantHandedOver(releasedImage)
	u.run("Back", 0, "Rollback was a success")
	u.wantHandedOver(ingressNginxImage)
	u.run("Headgate's chart", 0, "STATUS: deployed")
	u.wantHandedOver(releasedImage)
	u.run("Back", 0)
	u.wantHandedOver(ingressNginxImage)
	l.awaitMore(50)
	u.moveHost(l)
	u.wantAllRan()
}

// moveHost moves the host to a second release, and back. l are the clients at the old address:
// those who use the new address come before they go.
func (u *upgrade) moveHost(l *load) {
	u.t.Helper()
	u.run("Side by side", 0, "STATUS: deployed", "headgate-controller")
	moved := u.address("headgate")
	u.run("Side by side", 1)
	u.awaitAddress(moved, u.host("web"))
	there := u.startClients(moved)
	l.wantNoFailure()
	if err := u.unwatch(); err != nil {
		u.t.Error(err)
	}
	u.run("Side by side", 2)
	u.awaitShown(moved, "web-headgate")
	there.awaitMore(50)
	u.reviewedAs("headgate")

	back := strings.NewReplacer(
		"shop web ", "shop web-headgate ", "name: web$/", "name: web-headgate$/", "name: web-headgate/", "name: web/",
		"nginx$/", "headgate$/", ": headgate/", ": nginx/",
	)
	u.shell(back.Replace(u.block("Side by side", 1).commands))
	address := u.address("ingress-nginx")
	u.awaitAddress(address, u.host("web"))
	here := u.startClients(address)
	there.wantNoFailure()
	u.shell("kubectl delete ingress --namespace shop web-headgate")
	u.awaitShown(address, "web")
	u.run("Back", 1, `release "headgate" uninstalled`)
	here.awaitMore(50)
	here.wantNoFailure()
	u.wantHandedOver(ingressNginxImage)
}

// The images, by the names that they have in the document and in the chart that stands for
// ingress-nginx's.
const (
	releasedImage       = "ghcr.io/headgate/headgate:v0.1.0"
	releasedCertgen     = "ghcr.io/headgate/headgate-certgen:v0.1.0"
	ingressNginxImage   = "registry.k8s.io/ingress-nginx/controller:v1.15.1"
	ingressNginxCertgen = "registry.k8s.io/ingress-nginx/kube-webhook-certgen:v1.6.9"
)

// An upgrade has the namespaces and the release of the document. Its headgate has the
// namespace of the Ingress, and never runs.
type upgrade struct {
	*headgate
	kubectl kubectl
	// dir is the working directory, with both charts.
	dir  string
	page []*block
	// service is the controller's, as it was at first.
	service *corev1.Service
	// unwatch ends the watch of the status, and returns what was wrong.
	unwatch func() error
}

func newUpgrade(t *testing.T) *upgrade {
	t.Helper()
	cluster := shared.Start(t)
	cluster.NeedPods(t)
	u := &upgrade{headgate: &headgate{t: t, cluster: cluster, class: "shop"}, dir: t.TempDir(), page: readPage(t, "../../docs/upgrade.md")}
	u.kubectl = u.headgate.kubectl()
	own := headgateBuild.images()
	headgateBuild.loadAs(t, cluster, map[string][]string{
		own.controller: {releasedImage, ingressNginxImage}, own.certgen: {releasedCertgen, ingressNginxCertgen},
	})
	linkHelm(t, filepath.Join(u.kubectl.folder, "helm"))
	createCharts(t, u.dir)
	// Another test's may still be ending.
	clustertest.Eventually(t, podTimeout, u.absent)
	t.Cleanup(u.clean)
	namespaces := cluster.Client().CoreV1().Namespaces()
	must[*corev1.Namespace](u.headgate)(namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{}))
	u.createBackend("web")
	return u
}

// web is the Ingress that the document moves, with an annotation that lint notices.
func (u *upgrade) web() *networkingv1.Ingress {
	class := "nginx"
	ing := u.ingress("web", u.host("web"), "/", "web", "")
	ing.Spec.IngressClassName = &class
	ing.Annotations = map[string]string{"ingress.kubernetes.io/rewrite-target": "/"}
	return ing
}

// install installs the release that is upgraded, with the values of a user. The probes are
// fast, and a pod does not linger.
func (u *upgrade) install() {
	u.t.Helper()
	const values = `controller:
  replicaCount: 2
  extraArgs: {shutdown-grace-period: "5"}
  config: {worker-processes: "1"}
  readinessProbe: {periodSeconds: 1, initialDelaySeconds: 0, timeoutSeconds: 10}
  livenessProbe: {timeoutSeconds: 10}
`
	if err := os.WriteFile(filepath.Join(u.dir, "mine.yaml"), []byte(values), 0o600); err != nil {
		u.t.Fatal(err)
	}
	u.balance("ingress-nginx", clustertest.LocalAddress(2))
	u.balance("headgate", clustertest.LocalAddress(3))
	u.shell("helm install ingress-nginx ingress-nginx/ingress-nginx --namespace ingress-nginx --create-namespace --values mine.yaml --wait --timeout 10m")
	u.service = u.controllerService("ingress-nginx")
}

// balance gives the Service of a release an address, once there is one, as the load balancer
// of a cloud does.
func (u *upgrade) balance(release, address string) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	u.t.Cleanup(func() {
		cancel()
		<-ended
	})
	services := u.cluster.Client().CoreV1().Services(release)
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			s, err := services.Get(ctx, release+"-controller", metav1.GetOptions{})
			if err == nil && len(s.Status.LoadBalancer.Ingress) == 0 {
				s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
				_, _ = services.UpdateStatus(ctx, s, metav1.UpdateOptions{})
			}
			time.Sleep(50 * pace)
		}
	}()
}

func (u *upgrade) controllerService(release string) *corev1.Service {
	u.t.Helper()
	return must[*corev1.Service](u.headgate)(u.cluster.Client().CoreV1().Services(release).Get(u.t.Context(), release+"-controller", metav1.GetOptions{}))
}

// address is that of a release's load balancer.
func (u *upgrade) address(release string) string {
	u.t.Helper()
	s := u.controllerService(release)
	if len(s.Status.LoadBalancer.Ingress) != 1 {
		u.t.Fatalf("the Service of %s has the addresses %v", release, s.Status.LoadBalancer.Ingress)
	}
	return s.Status.LoadBalancer.Ingress[0].IP
}

// wantHandedOver checks that all pods have an image, that one of them leads, that the webhook
// works, and that the Service is the same.
func (u *upgrade) wantHandedOver(image string) {
	u.t.Helper()
	client := u.cluster.Client()
	var names map[string]bool
	clustertest.Eventually(u.t, podTimeout, func(ctx context.Context) (err error) {
		names, err = u.running(ctx, image)
		return err
	})
	u.reviewedAs("nginx")
	clustertest.Eventually(u.t, 2*timeout, func(ctx context.Context) error {
		lease, err := client.CoordinationV1().Leases("ingress-nginx").Get(ctx, "ingress-nginx-leader", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return heldByOne(lease, names)
	})
	now := u.controllerService("ingress-nginx")
	if now.UID != u.service.UID || now.Spec.ClusterIP != u.service.Spec.ClusterIP || !equality.Semantic.DeepEqual(now.Spec.Ports, u.service.Spec.Ports) ||
		now.Status.LoadBalancer.Ingress[0].IP != u.service.Status.LoadBalancer.Ingress[0].IP {
		u.t.Errorf("the Service was %+v, and is %+v", u.service.Spec, now.Spec)
	}
}

// running are the names of the release's pods, which are two of an image. Others may be ending.
func (u *upgrade) running(ctx context.Context, image string) (map[string]bool, error) {
	names := map[string]bool{}
	list, err := u.cluster.Client().CoreV1().Pods("ingress-nginx").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=controller"})
	if err != nil {
		return nil, err
	}
	for _, pod := range list.Items {
		if pod.DeletionTimestamp != nil {
			continue
		}
		names[pod.Name] = true
		if got := pod.Spec.Containers[0].Image; got != image {
			return nil, fmt.Errorf("the pod %s has the image %s, want %s", pod.Name, got, image)
		}
	}
	if len(names) != 2 {
		return nil, fmt.Errorf("the pods are %v, want two", names)
	}
	return names, nil
}

// startClients starts clients of the host that keep their connections, and some that do not.
func (u *upgrade) startClients(address string) *load {
	u.t.Helper()
	l := u.newLoad(address)
	for number := range 4 {
		l.add(client{host: u.host("web"), secure: number%2 == 1}, number > 1, 10*pace)
		l.add(client{host: u.host("web"), fresh: true, secure: number%2 == 1}, number > 1, 20*pace)
	}
	l.awaitMore(50)
	return l
}

// heldByOne is nil if the holder of a Lease is one of the pods.
func heldByOne(lease *coordinationv1.Lease, pods map[string]bool) error {
	holder := ""
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	for name := range pods {
		if strings.HasPrefix(holder, name) {
			return nil
		}
	}
	return fmt.Errorf("the leader is %q, which is none of %v", holder, pods)
}

// reviewedAs waits until a bad Ingress of a class is refused by the webhook, and a good one is
// accepted. It creates none.
func (u *upgrade) reviewedAs(class string) {
	u.t.Helper()
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	ingresses := u.cluster.Client().NetworkingV1().Ingresses("shop")
	good := u.ingress("reviewed", u.host("reviewed"), "/", "web", "")
	good.Spec.IngressClassName = &class
	bad := good.DeepCopy()
	bad.Annotations = map[string]string{vhost: "a b"}
	clustertest.Eventually(u.t, 2*timeout, func(ctx context.Context) error {
		if _, err := ingresses.Create(ctx, bad, dry); !apierrors.IsBadRequest(err) {
			return fmt.Errorf("a bad Ingress of the class %s: %v", class, err)
		}
		_, err := ingresses.Create(ctx, good, dry)
		return err
	})
}

// awaitStatus waits until the Ingress has an address in its status, and no other.
func (u *upgrade) awaitStatus(address string) {
	u.t.Helper()
	u.awaitShown(address, "web")
}

// watchStatus notes whether an Ingress is without its one address at any time, until the function that it returns is called:
// that says what was wrong.
func (h *headgate) watchStatus(name string) (end func() error) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h.t.Cleanup(cancel)
	watch, err := h.cluster.Client().NetworkingV1().Ingresses(h.class).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		var wrong error
		for event := range watch.ResultChan() {
			if ing, ok := event.Object.(*networkingv1.Ingress); ok && len(ing.Status.LoadBalancer.Ingress) != 1 {
				wrong = errors.Join(wrong, fmt.Errorf("the Ingress has the addresses %v", ing.Status.LoadBalancer.Ingress))
			}
		}
		if ctx.Err() == nil {
			wrong = errors.Join(wrong, errors.New("the watch of the status has ended"))
		}
		ended <- wrong
	}()
	return func() error {
		cancel()
		return <-ended
	}
}

// clean removes what is in no namespace first: the webhook would refuse the Ingresses of other
// tests.
func (u *upgrade) clean() {
	if u.t.Failed() {
		for _, namespace := range []string{"ingress-nginx", "headgate"} {
			u.logPodsOf(namespace, "app.kubernetes.io/component")
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), podTimeout)
	defer cancel()
	client, now := u.cluster.Client(), int64(0)
	for _, release := range []string{"ingress-nginx", "headgate"} {
		_ = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, release+"-admission", metav1.DeleteOptions{})
		_ = client.NetworkingV1().IngressClasses().Delete(ctx, strings.TrimPrefix(release, "ingress-"), metav1.DeleteOptions{})
		for _, name := range []string{release, release + "-admission"} {
			_ = client.RbacV1().ClusterRoles().Delete(ctx, name, metav1.DeleteOptions{})
			_ = client.RbacV1().ClusterRoleBindings().Delete(ctx, name, metav1.DeleteOptions{})
		}
	}
	for _, namespace := range u.namespaces() {
		_ = client.AppsV1().Deployments(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		_ = client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
		if err := client.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			u.t.Error(err)
		}
	}
	for ctx.Err() == nil {
		if u.absent(ctx) == nil {
			return
		}
		time.Sleep(50 * pace)
	}
	u.t.Error("the namespaces are still there")
}

// absent is nil if there are none of the namespaces, which other tests may have too.
func (u *upgrade) absent(ctx context.Context) error {
	list, err := u.cluster.Client().CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, n := range list.Items {
		if slices.Contains(u.namespaces(), n.Name) {
			return fmt.Errorf("there is a namespace %s", n.Name)
		}
	}
	return nil
}

func (u *upgrade) namespaces() []string { return []string{"shop", "headgate", "ingress-nginx"} }
