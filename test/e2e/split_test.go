package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// Two controls and two edges of the chart: an Ingress with a certificate and users is served by both edges, changes
// arrive at both, and the status is written. The edges have their certificates for their tokens.
func TestSplit(t *testing.T) {
	s := newSplit(t, "")
	host, late := s.host("web"), s.host("late")
	s.createBackend("web")
	pair := s.createSecret("web", host)
	s.createUsers("users")
	s.createIngress(withUsers(s.ingress("web", host, "/", "web", "web"), "users"))
	s.apply("install", "--set", "controller.mode=split")

	edges := s.release("controller")
	if len(edges) != 2 {
		t.Fatalf("there are %d edges, want 2", len(edges))
	}
	atEach := func(url string, is expectation) {
		t.Helper()
		for _, edge := range edges {
			s.address = edge.Status.PodIP
			s.await(url, is)
		}
	}
	atEach("https://"+known+"@"+host+"/", showing(pair, "web"))
	atEach("https://"+host+"/", status(http.StatusUnauthorized))
	s.wantEdges(edges)

	s.changeEndpoint("web", s.startEndpoint("other"))
	s.createIngress(s.ingress("late", late, "/", "web", ""))
	atEach("https://"+known+"@"+host+"/", from("other"))
	atEach("http://"+late+"/", from("other"))
	s.awaitShown(s.clientService().Spec.ClusterIP, "web", "late")

	must[*corev1.Secret](s.headgate)(s.cluster.Client().CoreV1().Secrets(s.class).Get(t.Context(), authorityName, metav1.GetOptions{}))
	trusted := must[*corev1.ConfigMap](s.headgate)(s.cluster.Client().CoreV1().ConfigMaps(s.class).Get(t.Context(), authorityName, metav1.GetOptions{}))
	if !strings.Contains(trusted.Data["ca.crt"], "CERTIFICATE") {
		t.Errorf("the ConfigMap of the authority has %q", trusted.Data)
	}
}

const (
	// controlPort is where edges connect to.
	controlPort   = 8444
	controlName   = releaseName + "-headgate-control"
	authorityName = releaseName + "-headgate-edges"
	// known are the name and the password of a user that createUsers creates.
	known = "user:secret"
)

// A splitRelease is a release of the chart that has, or may get, control and edges apart.
type splitRelease struct {
	*chartRelease
	more string // a second file with values
}

// newSplit makes a release that is not installed yet, with more values of the controller in YAML.
func newSplit(t *testing.T, values string) *splitRelease {
	t.Helper()
	s := &splitRelease{chartRelease: newChartRelease(t)}
	// The network of the test has no DNS: pods know the name of the controls' Service from /etc/hosts. Its address is
	// known before it is there by a Service of the test that leads to the same pods.
	controls := must[*corev1.Service](s.headgate)(s.cluster.Client().CoreV1().Services(s.class).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "controls"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app.kubernetes.io/instance": releaseName, "app.kubernetes.io/component": "control"},
			Ports:    []corev1.ServicePort{{Name: "edges", Port: controlPort}},
		},
	}, metav1.CreateOptions{}))
	text := fmt.Sprintf(`controller:
  hostAliases: [{ip: %s, hostnames: [%s.%s.svc]}]
  electionTTL: 3s
  config: {worker-processes: "1"}
  extraArgs: {shutdown-grace-period: "5", post-shutdown-grace-period: "0"}
  livenessProbe: {timeoutSeconds: 10}
  admissionWebhooks: {enabled: false}
%s`, controls.Spec.ClusterIP, controlName, s.class, values)
	s.more = filepath.Join(s.kubectl.folder, "split.yaml")
	if err := os.WriteFile(s.more, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			return // As for the release of each chart.
		}
		// What is in no namespace must not stay. The test's own context is done.
		if output, err := s.command(context.Background(), "uninstall", releaseName).CombinedOutput(); err != nil {
			t.Errorf("uninstalling: %v: %s", err, output)
		}
	})
	return s
}

// apply installs or upgrades the release, and waits until all pods are ready.
func (s *splitRelease) apply(command string, args ...string) {
	s.t.Helper()
	s.helm(append([]string{command, releaseName, s.chart(), "--values", s.values, "--values", s.more}, args...)...)
}

// release are the release's pods of a component that are not ending.
func (s *splitRelease) release(component string) []corev1.Pod {
	s.t.Helper()
	list := must[*corev1.PodList](s.headgate)(s.cluster.Client().CoreV1().Pods(s.class).List(s.t.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/instance=" + releaseName + ",app.kubernetes.io/component=" + component,
	}))
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// clientService is the Service for clients.
func (s *splitRelease) clientService() *corev1.Service {
	s.t.Helper()
	return must[*corev1.Service](s.headgate)(s.cluster.Client().CoreV1().Services(s.class).Get(s.t.Context(), releaseName+"-headgate-controller", metav1.GetOptions{}))
}

// wantEdges waits until the controls know all edges, and that these serve.
func (s *splitRelease) wantEdges(edges []corev1.Pod) {
	s.t.Helper()
	clustertest.Eventually(s.t, timeout, func(context.Context) error {
		var said strings.Builder
		for _, control := range s.release("control") {
			said.WriteString(s.kubectl.run("exec", "-n", s.class, control.Name, "--", "/nginx-ingress-controller", "explain", "http://"+s.host("web")+"/"))
		}
		text := strings.Join(strings.Fields(said.String()), " ")
		for _, edge := range edges {
			if !strings.Contains(text, "NGINX of the edge "+edge.Name+": generation 1 serves ") {
				return fmt.Errorf("%s does not serve: %s", edge.Name, said.String())
			}
		}
		return nil
	})
}
