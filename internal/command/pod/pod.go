// Package pod finds a pod of the controller, and runs commands in it.
//
// It does not know what the commands are.
package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// A Choice says which container of which pod is wanted. Of Name, Selector and
// Deployments, the first one that is set counts.
type Choice struct {
	// Name is the name of the pod.
	Name string
	// Selector selects pods by their labels.
	Selector string
	// Deployments are names: the pod is one of the first Deployment, or DaemonSet, that exists.
	Deployments []string
	// Control prefers the pod of a control, which knows why, where control and edges are apart. Otherwise that of an
	// edge is preferred, which has NGINX.
	Control bool
	// Container is its name. If it is empty, it is the default one of the pod: that of
	// the annotation which kubectl reads, DefaultContainer, or the first one.
	Container string
}

// DefaultContainer is the container's name in ingress-nginx's pods.
const DefaultContainer = "controller"

// componentLabel says which pods are controls, where control and edges are apart: it is that of the chart.
const (
	componentLabel   = "app.kubernetes.io/component"
	controlComponent = "control"
)

// containerAnnotation names the container that kubectl uses by default.
const containerAnnotation = "kubectl.kubernetes.io/default-container"

// A Target is a container of a pod.
type Target struct{ Namespace, Pod, Container string }

// Find returns the container. Of several pods, it prefers those of the wanted part, then those that are ready and
// not being deleted, then the first one by name.
func (c Choice) Find(ctx context.Context, client kubernetes.Interface, namespace string) (Target, error) {
	found, err := c.pods(ctx, client, namespace)
	if err != nil {
		return Target{}, err
	}
	return c.target(&found[0], namespace)
}

// FindAll returns the containers of all pods of the wanted part that run, or that of the pod that Find prefers if
// there is none.
func (c Choice) FindAll(ctx context.Context, client kubernetes.Interface, namespace string) ([]Target, error) {
	found, err := c.pods(ctx, client, namespace)
	if err != nil {
		return nil, err
	}
	var all []Target
	for i := range found {
		if i > 0 && (c.other(&found[i]) > 0 || rank(&found[i]) > runs) {
			continue
		}
		target, err := c.target(&found[i], namespace)
		if err != nil {
			return nil, err
		}
		all = append(all, target)
	}
	return all, nil
}

func (c Choice) target(p *corev1.Pod, namespace string) (Target, error) {
	container, err := c.container(p)
	return Target{namespace, p.Name, container}, err
}

// pods are those that are chosen, the preferred one first.
func (c Choice) pods(ctx context.Context, client kubernetes.Interface, namespace string) ([]corev1.Pod, error) {
	pods := client.CoreV1().Pods(namespace)
	if c.Name != "" {
		found, err := pods.Get(ctx, c.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("there is no pod %s in namespace %s", c.Name, namespace)
		}
		if err != nil {
			return nil, err
		}
		return []corev1.Pod{*found}, nil
	}
	selector, of := c.Selector, "with labels "+c.Selector
	if selector == "" {
		var err error
		if selector, of, err = c.deployment(ctx, client, namespace); err != nil {
			return nil, err
		}
	}
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, err
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("there is no pod %s in namespace %s", of, namespace)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(c.other(&a), c.other(&b)), cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// other is 1 for pods of the other part.
func (c Choice) other(p *corev1.Pod) int {
	if (p.Labels[componentLabel] == controlComponent) == c.Control {
		return 0
	}
	return 1
}

// deployment returns the selector of the first Deployment or DaemonSet that exists, and how it is
// called in messages.
func (c Choice) deployment(ctx context.Context, client kubernetes.Interface, namespace string) (selector, of string, err error) {
	for _, name := range c.Deployments {
		kind, found, err := workload(ctx, client, namespace, name)
		if err != nil {
			return "", "", err
		}
		if found == nil {
			continue
		}
		labels, err := metav1.LabelSelectorAsSelector(found)
		if err != nil {
			return "", "", fmt.Errorf("the selector of %s %s: %w", kind, name, err)
		}
		return labels.String(), "of " + kind + " " + name, nil
	}
	return "", "", fmt.Errorf("there is no Deployment %s in namespace %s: name the namespace (-n), or the pod by --deployment, --selector or --pod",
		strings.Join(c.Deployments, " or "), namespace)
}

// workload returns the kind and the selector of what has pods under a name, nil if nothing does. Who may not read
// DaemonSets is treated as if there was none.
func workload(ctx context.Context, client kubernetes.Interface, namespace, name string) (kind string, of *metav1.LabelSelector, err error) {
	d, err := client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return "Deployment", d.Spec.Selector, nil
	}
	if !apierrors.IsNotFound(err) {
		return "", nil, err
	}
	set, err := client.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		return "DaemonSet", set.Spec.Selector, nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return "", nil, nil
	}
	return "", nil, err
}

// runs is the highest rank of pods that run.
const runs = 2

// rank is lower for pods that are more likely to answer.
func rank(p *corev1.Pod) int {
	ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	switch {
	case ready && p.DeletionTimestamp == nil:
		return 0
	case ready:
		return 1
	case p.Status.Phase == corev1.PodRunning:
		return runs
	}
	return runs + 1
}

func (c Choice) container(p *corev1.Pod) (string, error) {
	var names []string
	for _, container := range p.Spec.Containers {
		names = append(names, container.Name)
	}
	if len(names) == 0 {
		return "", errors.New("pod " + p.Name + " has no containers")
	}
	if c.Container != "" {
		if !slices.Contains(names, c.Container) {
			return "", fmt.Errorf("there is no container %s in pod %s: must be one of %s", c.Container, p.Name, strings.Join(names, ", "))
		}
		return c.Container, nil
	}
	for _, name := range []string{p.Annotations[containerAnnotation], DefaultContainer} {
		if slices.Contains(names, name) {
			return name, nil
		}
	}
	return names[0], nil
}
