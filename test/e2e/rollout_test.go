package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

const (
	// rolloutGrace is how long a pod of Headgate serves on when it is deleted,
	// and rolloutLimit how long its NGINX then finishes connections.
	rolloutGrace = 5 * time.Second
	rolloutLimit = 8 * time.Second
)

// A rolling update of Headgate itself, in pods behind a Service, loses no
// request; WebSockets live until the time limit.
func TestRollingUpdateOfHeadgate(t *testing.T) {
	g := newGate(t)
	g.cluster.NeedPods(t)
	g.createClass(g.class, controllerClass(g.class))
	g.createBackend("web")
	host := g.host("web")
	g.createIngress(g.ingress("web", host, "/", "web", ""))
	address := g.runInPods(2)
	g.awaitAddress(address, host)
	t.Cleanup(func() {
		if t.Failed() {
			g.tellPods("headgate")
		}
	})
	old := g.pods("headgate")

	l := g.startLoadAt(address, host)
	for number := range 2 {
		l.add(client{host: host, fresh: true, secure: number == 1}, true, 2*pace)
		// Their connections idle, but not for the whole grace period.
		l.add(client{host: host, idle: rolloutGrace * 4 / 5}, number == 1, rolloutGrace/3)
	}
	var sockets []*webSocket
	for range 4 {
		sockets = append(sockets, g.openWebSocket(address, host))
	}
	began := time.Now()
	if err := g.cluster.Roll(t.Context(), g.class, "headgate"); err != nil {
		t.Fatal(err)
	}
	g.awaitGone("headgate", old)
	t.Logf("the old pods were gone after %v", time.Since(began).Round(time.Millisecond))
	l.awaitMore(500)
	l.wantNoFailure()
	events := must[*corev1.EventList](g)(g.cluster.Client().CoreV1().Events(g.class).List(t.Context(), metav1.ListOptions{}))
	for _, e := range events.Items {
		if e.Reason == "FailedPreStopHook" {
			t.Errorf("%s: %s", e.InvolvedObject.Name, e.Message)
		}
	}
	for _, s := range sockets {
		if lived := (<-s.ended).Sub(began); lived < rolloutGrace+rolloutLimit-time.Second {
			t.Errorf("a WebSocket lived for %v", lived)
		} else {
			t.Logf("a WebSocket lived for %v", lived.Round(time.Millisecond))
		}
	}
}

// runInPods runs Headgate as a Deployment behind a Service, and returns the
// Service's address.
func (g *gate) runInPods(replicas int32) (address string) {
	g.t.Helper()
	g.loadHeadgate()
	ctx, client := g.t.Context(), g.cluster.Client()
	must[*corev1.ConfigMap](g)(client.CoreV1().ConfigMaps(g.class).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "headgate"},
		Data:       map[string]string{"worker-shutdown-timeout": rolloutLimit.String(), "worker-processes": "1"},
	}, metav1.CreateOptions{}))
	g.actAsServiceAccount(
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services", "secrets", "configmaps", "namespaces", "nodes", "pods"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "ingressclasses"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"get", "list", "watch"}},
	)
	service := must[*corev1.Service](g)(client.CoreV1().Services(g.class).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "headgate"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "headgate"},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "https", Port: 443}},
		},
	}, metav1.CreateOptions{}))
	must[*appsv1.Deployment](g)(client.AppsV1().Deployments(g.class).Create(ctx, g.deployment(replicas), metav1.CreateOptions{}))
	rolled, cancel := context.WithTimeout(ctx, podPatience)
	defer cancel()
	if err := g.cluster.WaitRolledOut(rolled, g.class, "headgate"); err != nil {
		g.t.Fatal(err)
	}
	return service.Spec.ClusterIP
}

// awaitAddress waits until a host is served at a Service's own address:
// kube-proxy may write its rules some time after the pods are ready, and refuses
// connections until then.
func (g *gate) awaitAddress(address, host string) {
	g.t.Helper()
	for _, secure := range []bool{false, true} {
		c := client{cluster: g.cluster, at: address, host: host, secure: secure, fresh: true}
		clustertest.Eventually(g.t, patience, func(context.Context) error {
			return c.do("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
		})
	}
}

// tellPods logs what is known of an application's pods.
func (g *gate) tellPods(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	pods := g.cluster.Client().CoreV1().Pods(g.class)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		g.t.Log(err)
		return
	}
	for _, pod := range list.Items {
		text, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		g.t.Logf("pod %s, address %s, %v, log (%v):\n%s", pod.Name, pod.Status.PodIP, pod.Status.Conditions, err, text[max(0, len(text)-2000):])
	}
	events, err := g.cluster.Client().CoreV1().Events(g.class).List(ctx, metav1.ListOptions{})
	if err != nil {
		g.t.Log(err)
		return
	}
	for _, e := range events.Items {
		g.t.Log(e.LastTimestamp, e.InvolvedObject.Name, e.Reason, e.Message)
	}
}

const headgateImage = "cluster.invalid/headgate:1"

// loadHeadgate makes an image of Headgate. NGINX and all libraries are this
// machine's, which the pods see as volumes.
func (g *gate) loadHeadgate() {
	g.t.Helper()
	path, err := controller.path()
	if err != nil {
		g.t.Fatal(err)
	}
	if err := g.cluster.LoadImage(g.t.Context(), clustertest.Image{
		Name: headgateImage, Entrypoint: []string{"/headgate"},
		Files: map[string]string{
			"/headgate": path, "/wait-shutdown": filepath.Join(filepath.Dir(path), "wait-shutdown"),
			"/etc/passwd": "/etc/passwd", "/etc/group": "/etc/group",
		},
	}); err != nil {
		g.t.Fatal(err)
	}
}

// deployment is as a Helm chart would have it, with shorter times.
func (g *gate) deployment(replicas int32) *appsv1.Deployment {
	none, one, ending := intstr.FromInt32(0), intstr.FromInt32(1), int64(60)
	labels := map[string]string{"app": "headgate"}
	container := corev1.Container{
		Name: "headgate", Image: headgateImage, ImagePullPolicy: corev1.PullNever,
		Args: []string{
			"--controller-class", controllerClass(g.class), "--ingress-class", g.class, "--configmap", g.class + "/headgate",
			fmt.Sprintf("--shutdown-grace-period=%d", int(rolloutGrace.Seconds())),
		},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(10254)},
		}},
		Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/wait-shutdown"}}}},
	}
	spec := corev1.PodSpec{ServiceAccountName: "headgate", TerminationGracePeriodSeconds: &ending}
	for name, path := range map[string]string{"usr": "/usr", "lib": "/usr/lib", "lib64": "/usr/lib64"} {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name, ReadOnly: true})
	}
	spec.Containers = []corev1.Container{container}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "headgate"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &none, MaxSurge: &one}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}

// A webSocket is asked again and again until it ends.
type webSocket struct{ ended chan time.Time }

func (g *gate) openWebSocket(address, host string) *webSocket {
	g.t.Helper()
	connection := must[net.Conn](g)(g.cluster.Dial(g.t.Context(), "tcp", net.JoinHostPort(address, "80")))
	g.t.Cleanup(func() { connection.Close() })
	must[int](g)(io.WriteString(connection, "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	reader := bufio.NewReader(connection)
	answer := must[*http.Response](g)(http.ReadResponse(reader, nil))
	if answer.StatusCode != http.StatusSwitchingProtocols {
		g.t.Fatalf("a WebSocket was answered %s", answer.Status)
	}
	s := &webSocket{ended: make(chan time.Time, 1)}
	go func() {
		for echoed(connection, reader) {
			time.Sleep(10 * pace)
		}
		s.ended <- time.Now()
	}()
	return s
}

// echoed tells whether a message came back.
func echoed(connection net.Conn, reader io.Reader) bool {
	const message = "hello"
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		return false
	}
	// A text frame, masked by zeros.
	if _, err := io.WriteString(connection, "\x81\x85\x00\x00\x00\x00"+message); err != nil {
		return false
	}
	back := make([]byte, 2+len(message))
	_, err := io.ReadFull(reader, back)
	return err == nil && string(back) == "\x81\x05"+message
}
