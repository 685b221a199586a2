package clustertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var shared Shared

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(runChild())
	}
	os.Exit(shared.Run(m))
}

func TestNodeIsReady(t *testing.T) {
	c := shared.Start(t)
	c.NeedPods(t)
	nodes, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 1 {
		t.Fatalf("%d nodes, want 1", len(nodes.Items))
	}
	node := nodes.Items[0]
	ready := slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
	if version := node.Status.NodeInfo.KubeletVersion; !ready || !strings.HasPrefix(version, "v1.36.") {
		t.Errorf("kubelet %s, ready: %v", version, ready)
	}
}

// createBackend creates a backend and returns a client for its Service and the
// Service's URL.
func createBackend(t *testing.T, c *Cluster, namespace string, replicas int32) (*http.Client, string) {
	t.Helper()
	if err := c.CreateBackend(t.Context(), BackendDeployment(namespace, "web", replicas, time.Second)); err != nil {
		t.Fatal(err)
	}
	service, err := c.Client().CoreV1().Services(namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	transport := c.Transport("")
	// Each request may go to another pod.
	transport.DisableKeepAlives = true
	client := &http.Client{Transport: transport, Timeout: 5 * time.Second}
	url := "http://" + service.Spec.ClusterIP + "/"
	// kube-proxy may be behind the pods' readiness.
	Eventually(t, time.Minute, func(ctx context.Context) error {
		_, err := answer(client, url)
		return err
	})
	return client, url
}

// answer returns the first line of the answer, the name of the pod.
func answer(client *http.Client, url string) (string, error) {
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", response.Status, body)
	}
	first, _, _ := strings.Cut(string(body), "\n")
	return first, nil
}

func TestPodsAnswerBehindTheirService(t *testing.T) {
	c := shared.Start(t)
	c.NeedPods(t)
	namespace := c.Namespace(t)
	client, url := createBackend(t, c, namespace, 2)
	seen := map[string]bool{}
	Eventually(t, time.Minute, func(context.Context) error {
		name, err := answer(client, url)
		if err != nil {
			return err
		}
		if seen[name] = true; len(seen) < 2 {
			return fmt.Errorf("only one pod answered: %v", seen)
		}
		return nil
	})
	if err := c.Roll(t.Context(), namespace, "web"); err != nil {
		t.Fatal(err)
	}
	if err := c.WaitRolledOut(t.Context(), namespace, "web"); err != nil {
		t.Fatal(err)
	}
	Eventually(t, time.Minute, func(context.Context) error {
		name, err := answer(client, url)
		if err == nil && seen[name] {
			err = fmt.Errorf("%s was to be replaced", name)
		}
		return err
	})
}

func TestAPIServerStopsAndStarts(t *testing.T) {
	c := shared.Start(t)
	c.NeedPods(t)
	client, url := createBackend(t, c, c.Namespace(t), 1)
	if err := c.StopAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client().Discovery().ServerVersion(); err == nil {
		t.Error("the stopped API server answers")
	}
	if _, err := answer(client, url); err != nil {
		t.Errorf("pods do not answer without the API server: %v", err)
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client().Discovery().ServerVersion(); err != nil {
		t.Errorf("the API server does not answer after its start: %v", err)
	}
}

func TestAPIServerPauses(t *testing.T) {
	c := shared.Start(t)
	get := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := c.Client().CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	}
	if err := c.PauseAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := get(200 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused API server: %v, want the deadline exceeded", err)
	}
	if err := c.ResumeAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := get(10 * time.Second); err != nil {
		t.Error(err)
	}
}

func TestSnapshotIsRestored(t *testing.T) {
	c := shared.Start(t)
	c.NeedPods(t)
	namespace := c.Namespace(t)
	maps := c.Client().CoreV1().ConfigMaps(namespace)
	create := func(name string) {
		t.Helper()
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := maps.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create("before")
	if err := c.Snapshot(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	create("after")
	if err := c.Restore(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(t.Context(), "before", metav1.GetOptions{}); err != nil {
		t.Errorf("an object from before the snapshot: %v", err)
	}
	if _, err := maps.Get(t.Context(), "after", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an object from after the snapshot: %v, want not found", err)
	}
	createBackend(t, c, namespace, 1)
}

func TestWithoutPods(t *testing.T) {
	c := Start(t, Options{WithoutPods: true})
	namespace := c.Namespace(t)
	listener, err := c.Listen("tcp", ":9000")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host) }))
	}()
	// Two addresses of LocalRange.
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "hand-made"},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{LocalAddress(1)}}, {Addresses: []string{"10.191.255.254"}}},
	}
	if _, err := c.Client().DiscoveryV1().EndpointSlices(namespace).Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: c.Transport(""), Timeout: 5 * time.Second}
	for _, endpoint := range slice.Endpoints {
		want := endpoint.Addresses[0] + ":9000"
		if got, err := answer(client, "http://"+want); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	addressed := &http.Client{Transport: c.Transport(NodeAddress + ":9000"), Timeout: 5 * time.Second}
	if got, err := answer(addressed, "http://shop.example"); err != nil || got != "shop.example" {
		t.Errorf("got %q, %v; want shop.example", got, err)
	}
	text, err := output(c.Command(t.Context(), "ip", "-o", "address"))
	if err != nil || !strings.Contains(text, NodeAddress) {
		t.Errorf("a command in the cluster's network sees %q, %v", text, err)
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	program, err := buildProgram(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "up", "--dir="+t.TempDir())
	cmd.Env = []string{"PATH=/nonexistent"}
	text, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(text), "missing: containerd") || !strings.Contains(string(text), "install-deps cluster") {
		t.Errorf("%v: %s", err, text)
	}
}
