// Package clienttest gives tests the clients of package client that talk to client-go's fake.
package clienttest

import (
	"errors"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/headgate/headgate/internal/cluster/client"
)

// Of are clients that pass everything on to a fake.
func Of(fake kubernetes.Interface) *client.Clients {
	c := OfCore(fake.CoreV1())
	c.Ingresses = func(namespace string) client.WithStatus[*networkingv1.Ingress, *networkingv1.IngressList] {
		return fake.NetworkingV1().Ingresses(namespace)
	}
	c.IngressClasses = func() client.Resource[*networkingv1.IngressClass, *networkingv1.IngressClassList] {
		return fake.NetworkingV1().IngressClasses()
	}
	c.EndpointSlices = func(namespace string) client.Resource[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList] {
		return fake.DiscoveryV1().EndpointSlices(namespace)
	}
	c.Leases = func(namespace string) client.Resource[*coordinationv1.Lease, *coordinationv1.LeaseList] {
		return fake.CoordinationV1().Leases(namespace)
	}
	c.TokenReviews = func() client.Review[*authenticationv1.TokenReview] { return fake.AuthenticationV1().TokenReviews() }
	c.ValidatingWebhookConfigurations = func() client.Resource[*admissionregistrationv1.ValidatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfigurationList] {
		return fake.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	}
	c.MutatingWebhookConfigurations = func() client.Resource[*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.MutatingWebhookConfigurationList] {
		return fake.AdmissionregistrationV1().MutatingWebhookConfigurations()
	}
	return c
}

// OfCore are only those of the group without a name.
func OfCore(fake corev1client.CoreV1Interface) *client.Clients {
	return &client.Clients{
		Pods: func(namespace string) client.Resource[*corev1.Pod, *corev1.PodList] { return fake.Pods(namespace) },
		Services: func(namespace string) client.Resource[*corev1.Service, *corev1.ServiceList] {
			return services{fake.Services(namespace)}
		},
		Secrets: func(namespace string) client.Resource[*corev1.Secret, *corev1.SecretList] {
			return fake.Secrets(namespace)
		},
		ConfigMaps: func(namespace string) client.Resource[*corev1.ConfigMap, *corev1.ConfigMapList] {
			return fake.ConfigMaps(namespace)
		},
		Events: func(namespace string) client.Resource[*corev1.Event, *corev1.EventList] {
			return fake.Events(namespace)
		},
		Nodes:      func() client.Resource[*corev1.Node, *corev1.NodeList] { return fake.Nodes() },
		Namespaces: func() client.Resource[*corev1.Namespace, *corev1.NamespaceList] { return fake.Namespaces() },
	}
}

type services struct {
	client.Resource[*corev1.Service, *corev1.ServiceList]
}

// IsWatchListSemanticsUnSupported has informers list before they watch: the fake sends nothing at
// the beginning of a watch.
func (services) IsWatchListSemanticsUnSupported() bool { return true }

// CheckVersions has a fake refuse updates of old versions, as API servers do.
func CheckVersions(cluster *fake.Clientset) {
	cluster.PrependReactor("update", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		updated, err := meta.Accessor(action.(clienttesting.UpdateAction).GetObject())
		if err != nil {
			return true, nil, err
		}
		object, err := cluster.Tracker().Get(action.GetResource(), action.GetNamespace(), updated.GetName())
		if err != nil {
			return true, nil, err
		}
		present, err := meta.Accessor(object)
		if err != nil {
			return true, nil, err
		}
		if present.GetResourceVersion() != updated.GetResourceVersion() {
			return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), updated.GetName(), errors.New("it was changed"))
		}
		number, _ := strconv.Atoi(present.GetResourceVersion())
		updated.SetResourceVersion(strconv.Itoa(number + 1))
		return false, nil, nil
	})
}
