package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// released finds an image in a manifest; the group is its name.
var released = regexp.MustCompile(`image: ghcr\.io/headgate/(headgate|headgate-certgen):\S+`)

// An installation is that of deploy/static/baremetal/deploy.yaml, with two replicas.
type installation struct {
	*headgate
	kubectl
	ports map[string]int32 // of the node, by name
}

const installed = "headgate" // the namespace

// install applies the manifest, and waits until both pods are ready.
func install(t *testing.T) *installation {
	t.Helper()
	h := newHeadgate(t)
	h.cluster.NeedPods(t)
	i := &installation{headgate: h, kubectl: h.kubectl(), ports: map[string]int32{}}
	text, err := os.ReadFile("../../deploy/static/baremetal/deploy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	names := headgateBuild.load(t, h.cluster)
	manifest := released.ReplaceAllStringFunc(string(text), func(found string) string {
		if released.FindStringSubmatch(found)[1] == "headgate" {
			return "image: " + names.controller
		}
		return "image: " + names.certgen
	})
	changed := strings.Replace(manifest, "replicas: 1", "replicas: 2", 1)
	if manifest == string(text) || changed == manifest {
		t.Fatal("the manifest has no images or no replicas")
	}
	file := filepath.Join(t.TempDir(), "deploy.yaml")
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			i.logPodsOf(installed, "app.kubernetes.io/instance=headgate")
		}
		i.remove(file)
	})
	clustertest.Eventually(t, podTimeout, func(ctx context.Context) error {
		_, err := h.cluster.Client().CoreV1().Namespaces().Get(ctx, installed, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the namespace of another test is still there: %v", err)
	})
	i.run("apply", "-f", file)
	i.run("wait", "-n", installed, "--for=condition=complete", "--timeout=180s", "job", "--all")
	i.run("rollout", "status", "-n", installed, "--timeout=180s", "deployment/headgate-controller")
	service := must[*corev1.Service](h)(h.cluster.Client().CoreV1().Services(installed).Get(t.Context(), "headgate-controller", metav1.GetOptions{}))
	for _, port := range service.Spec.Ports {
		i.ports[port.Name] = port.NodePort
	}
	return i
}

// remove deletes everything that the manifest has. Pods serve on for a while after that.
func (i *installation) remove(file string) {
	// The test's context is done.
	c := i.cluster.Command(context.Background(), filepath.Join(i.folder, "kubectl"), "delete", "--wait=false", "--ignore-not-found", "-f", file)
	if output, err := c.CombinedOutput(); err != nil {
		i.t.Errorf("deleting the installation: %v: %s", err, output)
	}
}

// serves is nil if a host is served over HTTP and HTTPS at the node's ports.
func (i *installation) serves(ctx context.Context, host string) error {
	for scheme, port := range i.ports {
		transport := i.cluster.Transport(net.JoinHostPort(clustertest.NodeAddress, strconv.Itoa(int(port))))
		transport.DisableKeepAlives, transport.TLSClientConfig = true, anyCertificate()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+host+"/", nil)
		if err != nil {
			return err
		}
		response, err := (&http.Client{Transport: transport, Timeout: answerTimeout, CheckRedirect: stay}).Do(request)
		if err != nil {
			return err
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", scheme, response.Status)
		}
	}
	return nil
}

// pod is the name of one of the pods.
func (i *installation) pod() string {
	i.t.Helper()
	names := strings.Fields(i.run("get", "pods", "-n", installed, "-l", "app.kubernetes.io/component=controller", "-o", "name"))
	if len(names) != 2 {
		i.t.Fatalf("the pods are %q, want two", names)
	}
	return names[0]
}

// The manifest for bare metal installs Headgate in a namespace with the Pod Security Standard
// "restricted": it serves at the node's ports, its webhook refuses Ingresses, and it is there
// again after the node was.
func TestManifest(t *testing.T) {
	i := install(t)
	i.createBackend("web")
	host := i.host("web")
	ing := i.ingress("web", host, "/", "web", "")
	nginx := "nginx"
	ing.Spec.IngressClassName = &nginx
	// Before kube-proxy has the pods, the webhook can't be called.
	i.wantRefused(&nginx)
	i.createIngress(ing)
	clustertest.Eventually(t, timeout, func(ctx context.Context) error { return i.serves(ctx, host) })

	i.wantRestricted()
	pod := i.pod()
	i.wantOutput([]string{"exec", "-n", installed, pod, "--", "/dbg", "backends", "list"}, i.class+"-web-80")
	i.wantOutput([]string{"exec", "-n", installed, pod, "--", "sh", "-c", "id; cat /proc/1/comm"}, "uid=101(headgate) gid=82(headgate)", "dumb-init")
	i.wantOutput([]string{"logs", "-n", installed, pod}, "msg=serving")

	if err := i.cluster.StopNode(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.serves(t.Context(), host); err == nil {
		t.Error("the pods serve while the node is stopped")
	}
	if err := i.cluster.StartNode(t.Context()); err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, podTimeout, func(ctx context.Context) error { return i.serves(ctx, host) })
	// The webhook answers at the new addresses.
	clustertest.Eventually(t, podTimeout, func(context.Context) error { return i.refused(&nginx) })

	// The next test's Ingresses are none of its business.
	i.run("delete", "validatingwebhookconfiguration", "headgate-admission")
	clustertest.Eventually(t, timeout, func(context.Context) error {
		if err := i.refused(&nginx); err == nil {
			return errors.New("the webhook is still called")
		}
		return nil
	})
}

// refused is nil if the webhook refuses a bad Ingress.
func (i *installation) refused(class *string) error {
	bad := i.ingress("bad", i.host("bad"), "/", "web", "")
	bad.Spec.IngressClassName, bad.Annotations = class, map[string]string{vhost: "a b"}
	_, err := i.cluster.Client().NetworkingV1().Ingresses(i.class).Create(i.t.Context(), bad, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), vhost+`: invalid value "a b": must be`) {
		return fmt.Errorf("a bad Ingress: %v", err)
	}
	return nil
}

func (i *installation) wantRefused(class *string) {
	i.t.Helper()
	// The API server learns of the certificate after a while.
	clustertest.Eventually(i.t, timeout, func(context.Context) error { return i.refused(class) })
}

// wantRestricted checks that the namespace of the installation refuses pods that may do more.
func (i *installation) wantRestricted() {
	i.t.Helper()
	_, err := i.cluster.Client().CoreV1().Pods(installed).Create(i.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "unrestricted"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "any", Image: clustertest.BackendImage}}},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "restricted") {
		i.t.Errorf("a pod without a security context: %v", err)
	}
}
