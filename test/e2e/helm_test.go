package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

const charts = "../../deploy/charts"

// helmProgram builds the helm of the module that tests the chart, and returns its path.
var helmProgram = sync.OnceValues(func() (string, error) {
	c := exec.Command("go", "tool", "-n", "helm")
	c.Dir = filepath.Join(charts, "test")
	output, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("building helm: %w: %s", err, output)
	}
	return strings.TrimSpace(string(output)), nil
})

// linkHelm makes a link to helm.
func linkHelm(t *testing.T, path string) {
	t.Helper()
	program, err := helmProgram()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, path); err != nil {
		t.Fatal(err)
	}
}

// A chartRelease is a release of Headgate's chart in the namespace of the test, with two pods.
type chartRelease struct {
	*headgate
	kubectl kubectl
	values  string // the file with its values
}

const releaseName = "edge"

// The chart is installed, upgraded with other values, HTTP/3 among them, rolled back and uninstalled. Its pods
// are ready and serve and its webhook works each time, and nothing of it stays but what it
// does not own.
func TestChart(t *testing.T) {
	r := newChartRelease(t)
	r.createBackend("web")
	r.createIngress(r.ingress("web", r.host("web"), "/", "web", ""))
	before := r.objects()

	r.helm("install", releaseName, r.chart(), "--values", r.values)
	clustertest.Eventually(t, timeout, r.reviewed)
	r.awaitRelease(2, http.StatusOK)

	r.helm("upgrade", releaseName, r.chart(), "--values", r.values,
		"--set-string", "controller.config.force-ssl-redirect=true,controller.config.use-http3=true",
		"--set", "controller.metrics.enabled=true,controller.replicaCount=3")
	r.awaitRelease(3, http.StatusPermanentRedirect)
	r.wantPorts("", "TCP 80", "TCP 443")
	r.wantPorts("-http3", "UDP 443")
	clustertest.Eventually(t, timeout, r.reviewed)

	r.helm("rollback", releaseName, "1")
	r.awaitRelease(2, http.StatusOK)
	r.wantPorts("", "TCP 80", "TCP 443")
	clustertest.Eventually(t, timeout, r.reviewed)

	r.helm("uninstall", releaseName)
	r.wantLeft(before,
		"v1 Secret "+releaseName+"-headgate-admission",
		"coordination.k8s.io/v1 Lease "+releaseName+"-headgate-leader",
	)
}

func newChartRelease(t *testing.T) *chartRelease {
	t.Helper()
	h := newHeadgate(t)
	h.cluster.NeedPods(t)
	r := &chartRelease{headgate: h, kubectl: h.kubectl()}
	linkHelm(t, filepath.Join(r.kubectl.folder, "helm"))
	r.values = filepath.Join(r.kubectl.folder, "values.yaml")
	images := headgateBuild.load(t, h.cluster)
	// The network of the test has no load balancer, for which helm would wait.
	text := fmt.Sprintf(`controller:
  replicaCount: 2
  image: {repository: %s, tag: %s}
  ingressClass: %[3]s
  ingressClassResource: {name: %[3]s, controllerValue: %s}
  service: {type: ClusterIP}
  readinessProbe: {initialDelaySeconds: 0, periodSeconds: 1}
  terminationGracePeriodSeconds: 60
  admissionWebhooks:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[3]s}}
    patch:
      image: {repository: %[5]s, tag: %[2]s}
`, strings.TrimSuffix(images.controller, ":"+headgateBuild.tag), headgateBuild.tag, h.class, controllerClass(h.class),
		strings.TrimSuffix(images.certgen, ":"+headgateBuild.tag))
	if err := os.WriteFile(r.values, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			h.logPodsOf(h.class, "app.kubernetes.io/instance="+releaseName)
			// The test's own context is done.
			_ = r.command(context.Background(), "uninstall", releaseName).Run()
		}
	})
	return r
}

func (r *chartRelease) chart() string { return filepath.Join(charts, "headgate") }

func (r *chartRelease) command(ctx context.Context, args ...string) *exec.Cmd {
	c := r.cluster.Command(ctx, filepath.Join(r.kubectl.folder, "helm"), append(args, "--namespace", r.class)...)
	c.Env = append(c.Env, "HOME="+r.kubectl.folder)
	return c
}

// helm runs a command that waits until it is done.
func (r *chartRelease) helm(args ...string) {
	r.t.Helper()
	if output, err := r.command(r.t.Context(), append(args, "--wait", "--timeout=10m")...).CombinedOutput(); err != nil {
		r.t.Fatalf("helm %q: %v: %s", args, err, output)
	}
}

// awaitRelease waits until there are as many pods as there should be, and each of them answers
// with a status.
func (r *chartRelease) awaitRelease(pods, status int) {
	r.t.Helper()
	clustertest.Eventually(r.t, podTimeout, func(ctx context.Context) error {
		list, err := r.cluster.Client().CoreV1().Pods(r.class).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=controller"})
		if err != nil {
			return err
		}
		if len(list.Items) != pods {
			return fmt.Errorf("there are %d pods, want %d", len(list.Items), pods)
		}
		for _, pod := range list.Items {
			r.address = pod.Status.PodIP
			if a, err := r.get(ctx, "http://"+r.host("web")+"/"); err != nil || a.status != status {
				return fmt.Errorf("%s answers %d (%v), want %d", pod.Name, a.status, err, status)
			}
		}
		return nil
	})
}

// wantPorts checks the ports of the Service of the controller whose name has a suffix.
func (r *chartRelease) wantPorts(suffix string, want ...string) {
	r.t.Helper()
	service, err := r.cluster.Client().CoreV1().Services(r.class).Get(r.t.Context(), releaseName+"-headgate-controller"+suffix, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	var got []string
	for _, port := range service.Spec.Ports {
		got = append(got, fmt.Sprintf("%s %d", port.Protocol, port.Port))
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("the Service %s has the ports %q, want %q", service.Name, got, want)
	}
}

// objects are all objects without a namespace and in that of the test, by version, kind and name,
// but for what Kubernetes makes by itself.
func (r *chartRelease) objects() map[string]bool {
	r.t.Helper()
	client := r.cluster.Client()
	lists, err := client.Discovery().ServerPreferredResources()
	if err != nil {
		r.t.Fatal(err)
	}
	config := r.cluster.Config()
	// Some versions are old.
	config.WarningHandler = rest.NoWarnings{}
	dynamicClient := must[*dynamic.DynamicClient](r.headgate)(dynamic.NewForConfig(config))
	found := map[string]bool{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			// Other tests' namespaces and their contents are still ending.
			if resource.Kind == "Event" || resource.Kind == "Namespace" || resource.Kind == "PersistentVolume" {
				continue
			}
			namespace := ""
			if resource.Namespaced {
				namespace = r.class
			}
			objects, err := dynamicClient.Resource(version.WithResource(resource.Name)).Namespace(namespace).List(r.t.Context(), metav1.ListOptions{})
			if err != nil {
				r.t.Fatal(err)
			}
			for _, object := range objects.Items {
				found[list.GroupVersion+" "+resource.Kind+" "+object.GetName()] = true
			}
		}
	}
	return found
}

// wantLeft waits until there is nothing more than before, but for what is named.
func (r *chartRelease) wantLeft(before map[string]bool, names ...string) {
	r.t.Helper()
	clustertest.Eventually(r.t, podTimeout, func(context.Context) error {
		left := r.objects()
		maps.DeleteFunc(left, func(name string, _ bool) bool { return before[name] })
		if got := slices.Sorted(maps.Keys(left)); !slices.Equal(got, slices.Sorted(slices.Values(names))) {
			return errors.New("these objects are left:\n" + strings.Join(got, "\n"))
		}
		return nil
	})
}
