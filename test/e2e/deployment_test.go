package e2e_test

import (
	"context"
	"fmt"
	"maps"
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

// An inPods is an installation of Headgate as a Deployment behind a Service, both named headgate.
type inPods struct {
	replicas int32
	// image is this commit's if it is empty.
	image string
	// options are those of the ConfigMap, and flags those of the controller, beside the usual ones.
	options map[string]string
	flags   []string
}

// runInPods installs Headgate, waits until it is ready, and returns the Service's address.
func (h *headgate) runInPods(p inPods) (address string) {
	h.t.Helper()
	ctx, client := h.t.Context(), h.cluster.Client()
	options := map[string]string{"worker-shutdown-timeout": rolloutLimit.String(), "worker-processes": "1"}
	maps.Copy(options, p.options)
	must[*corev1.ConfigMap](h)(client.CoreV1().ConfigMaps(h.class).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "headgate"}, Data: options,
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
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80}, {Name: "https", Port: 443}, {Name: "http3", Port: 443, Protocol: corev1.ProtocolUDP}, {Name: "stream", Port: 4000},
			},
		},
	}, metav1.CreateOptions{}))
	must[*appsv1.Deployment](h)(client.AppsV1().Deployments(h.class).Create(ctx, h.deployment(p), metav1.CreateOptions{}))
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
func (h *headgate) deployment(p inPods) *appsv1.Deployment {
	none, one, ending := intstr.FromInt32(0), intstr.FromInt32(1), int64(60)
	labels := map[string]string{"app": "headgate"}
	volumes, mounts := writable()
	image := p.image
	if image == "" {
		image = headgateBuild.load(h.t, h.cluster).controller
	}
	container := corev1.Container{
		Name: "headgate", Image: image, ImagePullPolicy: corev1.PullNever,
		Args: append([]string{
			"/nginx-ingress-controller",
			"--controller-class", controllerClass(h.class), "--ingress-class", h.class, "--configmap", h.class + "/headgate",
			fmt.Sprintf("--shutdown-grace-period=%d", int(rolloutGrace.Seconds())),
		}, p.flags...),
		// A pod that ends is unready after as many seconds as in ingress-nginx's chart. kube-proxy then sends
		// the datagrams of clients elsewhere.
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 30, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(10254)},
		}},
		VolumeMounts:    mounts,
		SecurityContext: restricted(101, 82, "NET_BIND_SERVICE"),
		Lifecycle:       &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/wait-shutdown"}}}},
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "headgate"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &p.replicas,
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
