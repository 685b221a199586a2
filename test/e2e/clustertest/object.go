package clustertest

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// pollInterval is the time between two checks of a condition.
const pollInterval = 20 * time.Millisecond

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Namespace makes a namespace for the test, ready for pods, and deletes it with
// all that is in it at the end of the test, without waiting until it is gone.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	prefix := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	namespace, err := c.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: prefix[:min(len(prefix), 50)] + "-"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("making a namespace: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context is done by now.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.client.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("deleting the namespace: %v", err)
		}
	})
	// Pods are refused until the namespace has it.
	Eventually(t, time.Minute, func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(namespace.Name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return namespace.Name
}

// Eventually calls the condition until it returns nil, and fails the test with
// its last error after the limit.
func Eventually(t testing.TB, limit time.Duration, condition func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := poll(ctx, condition); err != nil {
		t.Fatal(err)
	}
}

func poll(ctx context.Context, condition func(context.Context) error) error {
	var last error
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		// The last error before the context's end says more than the one that it causes.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", ctx.Err(), last)
		case <-time.After(pollInterval):
		}
	}
}

// BackendDeployment describes pods that run the test backend on the port named
// http, 8080. Each answers with its pod's name and has a readiness probe every
// second. A deleted pod still serves for preStop, in whole seconds, before it
// begins to end. The caller may change the Deployment, and creates it.
func BackendDeployment(namespace, name string, replicas int32, preStop time.Duration) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	grace := int64(preStop/time.Second) + 15
	container := corev1.Container{
		Name: "backend", Image: BackendImage, ImagePullPolicy: corev1.PullNever,
		Args:  []string{"-name=$(POD_NAME)"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
		Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
		}}},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")},
		}},
	}
	if preStop > 0 {
		container.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
			Sleep: &corev1.SleepAction{Seconds: int64(preStop / time.Second)},
		}}
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{container}},
			},
		},
	}
}

// BackendService describes the Service of a BackendDeployment, with port 80.
func BackendService(namespace, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}},
		},
	}
}

// CreateBackend creates the Deployment and a Service of the same name, and
// waits until all pods are ready.
func (c *Cluster) CreateBackend(ctx context.Context, deployment *appsv1.Deployment) error {
	if c.withoutPods != nil {
		return fmt.Errorf("creating a backend: %w", c.withoutPods)
	}
	service := BackendService(deployment.Namespace, deployment.Name)
	if _, err := c.client.CoreV1().Services(service.Namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a Service: %w", err)
	}
	if _, err := c.client.AppsV1().Deployments(deployment.Namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a Deployment: %w", err)
	}
	return c.WaitRolledOut(ctx, deployment.Namespace, deployment.Name)
}

// Roll changes the pod template, so that the Deployment replaces all its pods.
// It does not wait.
func (c *Cluster) Roll(ctx context.Context, namespace, name string) error {
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"rolled":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	_, err := c.client.AppsV1().Deployments(namespace).Patch(
		ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("rolling a Deployment: %w", err)
	}
	return nil
}

// WaitRolledOut waits until all pods of the Deployment are of its newest
// template and ready, and no older one counts. Older ones may be ending still.
func (c *Cluster) WaitRolledOut(ctx context.Context, namespace, name string) error {
	return poll(ctx, func(ctx context.Context) error {
		deployment, err := c.client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("waiting for a Deployment: %w", err)
		}
		want, status := *deployment.Spec.Replicas, deployment.Status
		if status.ObservedGeneration < deployment.Generation || status.Replicas != want ||
			status.UpdatedReplicas != want || status.AvailableReplicas != want {
			return fmt.Errorf("the Deployment %s wants %d pods; it has %d, %d of them updated and %d available",
				name, want, status.Replicas, status.UpdatedReplicas, status.AvailableReplicas)
		}
		return nil
	})
}
