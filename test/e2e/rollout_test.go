package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
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
	// rolloutGrace is how long a deleted pod of Headgate still serves, and
	// rolloutLimit how long its NGINX then takes to finish connections.
	rolloutGrace = 5 * time.Second
	rolloutLimit = 8 * time.Second
)

// A rolling update of Headgate itself, in pods behind a Service, loses no
// request; WebSockets live until the time limit.
func TestRollingUpdateOfHeadgate(t *testing.T) {
	h := newHeadgate(t)
	h.cluster.NeedPods(t)
	h.createClass(h.class, controllerClass(h.class))
	h.createBackend("web")
	host := h.host("web")
	h.createIngress(h.ingress("web", host, "/", "web", ""))
	address := h.runInPods(2)
	h.awaitAddress(address, host)
	t.Cleanup(func() {
		if t.Failed() {
			h.logPods("headgate")
		}
	})
	old := h.pods("headgate")

	l := h.startLoadAt(address, host)
	for number := range 2 {
		l.add(client{host: host, fresh: true, secure: number == 1}, true, 2*pace)
		// Their connections idle, but not for the whole grace period.
		l.add(client{host: host, idle: rolloutGrace * 4 / 5}, number == 1, rolloutGrace/3)
	}
	var sockets []*webSocket
	for range 4 {
		sockets = append(sockets, h.openWebSocket(address, host))
	}
	began := time.Now()
	if err := h.cluster.Roll(t.Context(), h.class, "headgate"); err != nil {
		t.Fatal(err)
	}
	h.awaitGone("headgate", old)
	t.Logf("the old pods were gone after %v", time.Since(began).Round(time.Millisecond))
	l.awaitMore(500)
	l.wantNoFailure()
	events := must[*corev1.EventList](h)(h.cluster.Client().CoreV1().Events(h.class).List(t.Context(), metav1.ListOptions{}))
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
func (h *headgate) runInPods(replicas int32) (address string) {
	h.t.Helper()
	ctx, client := h.t.Context(), h.cluster.Client()
	must[*corev1.ConfigMap](h)(client.CoreV1().ConfigMaps(h.class).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "headgate"},
		Data:       map[string]string{"worker-shutdown-timeout": rolloutLimit.String(), "worker-processes": "1"},
	}, metav1.CreateOptions{}))
	h.actAsServiceAccount(
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services", "secrets", "configmaps", "namespaces", "nodes", "pods"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "ingressclasses"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"get", "list", "watch"}},
	)
	service := must[*corev1.Service](h)(client.CoreV1().Services(h.class).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "headgate"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "headgate"},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "https", Port: 443}},
		},
	}, metav1.CreateOptions{}))
	must[*appsv1.Deployment](h)(client.AppsV1().Deployments(h.class).Create(ctx, h.deployment(replicas), metav1.CreateOptions{}))
	rolled, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	if err := h.cluster.WaitRolledOut(rolled, h.class, "headgate"); err != nil {
		h.t.Fatal(err)
	}
	return service.Spec.ClusterIP
}

// awaitAddress waits until a host is served at a Service's own address:
// kube-proxy may write its rules some time after the pods are ready, and refuses
// connections until then.
func (h *headgate) awaitAddress(address, host string) {
	h.t.Helper()
	for _, secure := range []bool{false, true} {
		c := client{cluster: h.cluster, at: address, host: host, secure: secure, fresh: true}
		clustertest.Eventually(h.t, timeout, func(context.Context) error {
			return c.do("GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
		})
	}
}

// logPods logs the conditions and logs of an application's pods.
func (h *headgate) logPods(name string) { h.logPodsOf(h.class, "app="+name) }

func (h *headgate) logPodsOf(namespace, selector string) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	pods := h.cluster.Client().CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		h.t.Log(err)
		return
	}
	for _, pod := range list.Items {
		text, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		h.t.Logf("pod %s, address %s, %v, log (%v):\n%s", pod.Name, pod.Status.PodIP, pod.Status.Conditions, err, text[max(0, len(text)-2000):])
	}
	events, err := h.cluster.Client().CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		h.t.Log(err)
		return
	}
	for _, e := range events.Items {
		h.t.Log(e.LastTimestamp, e.InvolvedObject.Name, e.Reason, e.Message)
	}
}

// deployment is like that of a Helm chart, with shorter times.
func (h *headgate) deployment(replicas int32) *appsv1.Deployment {
	none, one, ending := intstr.FromInt32(0), intstr.FromInt32(1), int64(60)
	labels := map[string]string{"app": "headgate"}
	volumes, mounts := writable()
	container := corev1.Container{
		Name: "headgate", Image: headgateBuild.load(h.t, h.cluster).controller, ImagePullPolicy: corev1.PullNever,
		Args: []string{
			"/nginx-ingress-controller",
			"--controller-class", controllerClass(h.class), "--ingress-class", h.class, "--configmap", h.class + "/headgate",
			fmt.Sprintf("--shutdown-grace-period=%d", int(rolloutGrace.Seconds())),
		},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(10254)},
		}},
		VolumeMounts:    mounts,
		SecurityContext: restricted(101, 82, "NET_BIND_SERVICE"),
		Lifecycle:       &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/wait-shutdown"}}}},
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "headgate"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &none, MaxSurge: &one}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				ServiceAccountName: "headgate", TerminationGracePeriodSeconds: &ending, Containers: []corev1.Container{container}, Volumes: volumes,
			}},
		},
	}
}

// writable are the folders that Headgate writes in, where the root is read-only.
func writable() (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	for name, path := range map[string]string{"tmp": "/tmp", "files": "/etc/ingress-controller", "run": "/run"} {
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: path})
	}
	return volumes, mounts
}

// restricted is the security context of ingress-nginx's chart, with a read-only root.
func restricted(user, group int64, added ...corev1.Capability) *corev1.SecurityContext {
	yes, no := true, false
	return &corev1.SecurityContext{
		RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &group, AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: added},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// A webSocket gets messages until its connection ends.
type webSocket struct{ ended chan time.Time }

func (h *headgate) openWebSocket(address, host string) *webSocket {
	h.t.Helper()
	connection := must[net.Conn](h)(h.cluster.Dial(h.t.Context(), "tcp", net.JoinHostPort(address, "80")))
	h.t.Cleanup(func() { connection.Close() })
	must[int](h)(io.WriteString(connection, "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))
	reader := bufio.NewReader(connection)
	answer := must[*http.Response](h)(http.ReadResponse(reader, nil))
	if answer.StatusCode != http.StatusSwitchingProtocols {
		h.t.Fatalf("a WebSocket was answered %s", answer.Status)
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

// echoed reports whether a message came back.
func echoed(connection net.Conn, reader io.Reader) bool {
	const message = "hello"
	if err := connection.SetDeadline(time.Now().Add(timeout)); err != nil {
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
