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
	// Deployments are names: the pod is one of the first Deployment that exists.
	Deployments []string
	// Container is its name. If it is empty, it is the default one of the pod: that of
	// the annotation which kubectl reads, DefaultContainer, or the first one.
	Container string
}

// DefaultContainer is the container's name in ingress-nginx's pods.
const DefaultContainer = "controller"

// containerAnnotation names the container that kubectl uses by default.
const containerAnnotation = "kubectl.kubernetes.io/default-container"

// A Target is a container of a pod.
type Target struct{ Namespace, Pod, Container string }

// Find returns the container. Of several pods, it prefers those that are ready and
// not being deleted, then the first one by name.
func (c Choice) Find(ctx context.Context, client kubernetes.Interface, namespace string) (Target, error) {
	found, err := c.pod(ctx, client, namespace)
	if err != nil {
		return Target{}, err
	}
	container, err := c.container(found)
	if err != nil {
		return Target{}, err
	}
	return Target{namespace, found.Name, container}, nil
}

func (c Choice) pod(ctx context.Context, client kubernetes.Interface, namespace string) (*corev1.Pod, error) {
	pods := client.CoreV1().Pods(namespace)
	if c.Name != "" {
		found, err := pods.Get(ctx, c.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("there is no pod %s in namespace %s", c.Name, namespace)
		}
		return found, err
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
	return new(slices.MinFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.Name, b.Name))
	})), nil
}

// deployment returns the selector of the first Deployment that exists, and how it is
// called in messages.
func (c Choice) deployment(ctx context.Context, client kubernetes.Interface, namespace string) (selector, of string, err error) {
	for _, name := range c.Deployments {
		d, err := client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", "", err
		}
		labels, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err != nil {
			return "", "", fmt.Errorf("the selector of Deployment %s: %w", name, err)
		}
		return labels.String(), "of Deployment " + name, nil
	}
	return "", "", fmt.Errorf("there is no Deployment %s in namespace %s: name the namespace (-n), or the pod by --deployment, --selector or --pod",
		strings.Join(c.Deployments, " or "), namespace)
}

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
		return 2
	}
	return 3
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
