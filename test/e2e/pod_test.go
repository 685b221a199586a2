package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// startPod starts the controller in a pod of its image, with the security context of
// ingress-nginx's chart and a read-only root. It is a pod without a Deployment, which would
// start a controller again that has ended.
func (h *headgate) startPod() {
	h.t.Helper()
	h.cluster.NeedPods(h.t)
	if h.account == "" {
		h.account = "administrator"
		h.createAdministrator()
	}
	volumes, mounts := writable()
	ending := int64(timeout.Seconds())
	container := corev1.Container{
		Name: "controller", Image: headgateBuild.load(h.t, h.cluster).controller, ImagePullPolicy: corev1.PullNever,
		Args: append([]string{"/nginx-ingress-controller"}, h.args...), VolumeMounts: mounts,
		SecurityContext: restricted(101, 82, "NET_BIND_SERVICE"),
	}
	for _, variable := range h.env {
		name, value, _ := strings.Cut(variable, "=")
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: value})
	}
	pods := h.cluster.Client().CoreV1().Pods(h.class)
	pod := must[*corev1.Pod](h)(pods.Create(h.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "controller-"},
		Spec: corev1.PodSpec{
			ServiceAccountName: h.account, TerminationGracePeriodSeconds: &ending, RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{container}, Volumes: volumes,
		},
	}, metav1.CreateOptions{}))
	h.pod, h.ended = pod.Name, make(chan struct{})
	clustertest.Eventually(h.t, podTimeout, func(ctx context.Context) error {
		pod, err := pods.Get(ctx, h.pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		h.address = pod.Status.PodIP
		if states := pod.Status.ContainerStatuses; h.address == "" || len(states) == 0 || states[0].State.Waiting != nil {
			return fmt.Errorf("the pod does not run: %+v", pod.Status)
		}
		return nil
	})
	log, err := h.cluster.PodLog(h.class, h.pod)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { log.Close() })
	h.logs = append(h.logs, log)
	go h.followPod(h.t.Context(), h.pod, h.ended)
}

// createAdministrator creates a ServiceAccount that may do everything.
func (h *headgate) createAdministrator() {
	h.t.Helper()
	client := h.cluster.Client()
	must[*corev1.ServiceAccount](h)(client.CoreV1().ServiceAccounts(h.class).Create(h.t.Context(), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: h.account},
	}, metav1.CreateOptions{}))
	name := h.class + "-" + h.account
	must[*rbacv1.ClusterRoleBinding](h)(client.RbacV1().ClusterRoleBindings().Create(h.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: h.class, Name: h.account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}, metav1.CreateOptions{}))
	h.t.Cleanup(func() {
		if err := client.RbacV1().ClusterRoleBindings().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			h.t.Error(err)
		}
	})
}

// followPod waits until the pod's controller has ended, also while the API server is away.
func (h *headgate) followPod(ctx context.Context, name string, ended chan struct{}) {
	for ctx.Err() == nil {
		code, err := h.watchPod(ctx, name)
		if err == nil {
			h.code = code
			close(ended)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// watchPod returns the exit code of a pod's controller.
func (h *headgate) watchPod(ctx context.Context, name string) (code int, err error) {
	watch, err := h.cluster.Client().CoreV1().Pods(h.class).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return 0, err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			break
		}
		for _, status := range pod.Status.ContainerStatuses {
			if end := status.State.Terminated; end != nil {
				return int(end.ExitCode), nil
			}
		}
	}
	return 0, errors.New("the watch ended")
}

// stopPod deletes the pod, and waits until the controller has ended.
func (h *headgate) stopPod() {
	h.t.Helper()
	if err := h.cluster.Client().CoreV1().Pods(h.class).Delete(h.t.Context(), h.pod, metav1.DeleteOptions{}); err != nil {
		h.t.Fatal(err)
	}
	select {
	case <-h.ended:
	case <-time.After(podTimeout):
		h.t.Fatal("headgate did not end after its pod was deleted")
	}
}

// podLogs is what the controllers of all pods have written to standard error.
func (h *headgate) podLogs() string {
	var all strings.Builder
	for _, file := range h.logs {
		text, err := io.ReadAll(io.NewSectionReader(file, 0, 1<<30))
		if err != nil && !errors.Is(err, os.ErrClosed) {
			return err.Error()
		}
		// TIME STREAM TAG TEXT; the tag P says that the line goes on.
		for line := range strings.Lines(string(text)) {
			fields := strings.SplitN(line, " ", 4)
			if len(fields) < 4 || fields[1] != "stderr" {
				continue
			}
			if fields[2] == "P" {
				fields[3] = strings.TrimSuffix(fields[3], "\n")
			}
			all.WriteString(fields[3])
		}
	}
	return all.String()
}
