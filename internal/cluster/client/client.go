// Package client has the clients of the resources that Headgate reads and writes in a cluster.
//
// client-go's own clients know all resources of all groups, in twenty megabytes that are not called
// (docs/decisions/0069). The package knows the types of resources and must not know what is read of them.
package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// A Resource has the objects of one kind, of one namespace or of the cluster.
type Resource[T, L any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (T, error)
}

// A WithStatus is a Resource whose objects have a status of their own.
type WithStatus[T, L any] interface {
	Resource[T, L]
	UpdateStatus(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
}

// A Review is answered at once, and kept nowhere.
type Review[T any] interface {
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
}

// Clients are those of one API server. A namespace may be empty, for all of them.
type Clients struct {
	Pods           func(namespace string) Resource[*corev1.Pod, *corev1.PodList]
	Services       func(namespace string) Resource[*corev1.Service, *corev1.ServiceList]
	Secrets        func(namespace string) Resource[*corev1.Secret, *corev1.SecretList]
	ConfigMaps     func(namespace string) Resource[*corev1.ConfigMap, *corev1.ConfigMapList]
	Events         func(namespace string) Resource[*corev1.Event, *corev1.EventList]
	Nodes          func() Resource[*corev1.Node, *corev1.NodeList]
	Namespaces     func() Resource[*corev1.Namespace, *corev1.NamespaceList]
	Ingresses      func(namespace string) WithStatus[*networkingv1.Ingress, *networkingv1.IngressList]
	IngressClasses func() Resource[*networkingv1.IngressClass, *networkingv1.IngressClassList]
	EndpointSlices func(namespace string) Resource[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList]
	Leases         func(namespace string) Resource[*coordinationv1.Lease, *coordinationv1.LeaseList]
	TokenReviews   func() Review[*authenticationv1.TokenReview]

	ValidatingWebhookConfigurations func() Resource[*admissionregistrationv1.ValidatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfigurationList]
	MutatingWebhookConfigurations   func() Resource[*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.MutatingWebhookConfigurationList]
}

// New makes clients that send requests by one HTTP client. It sends none itself, and fails only
// for invalid settings.
func New(config *rest.Config, over *http.Client) (*Clients, error) {
	shared := *config
	// Without one for all, the client of each group would have a limit of its own.
	if shared.RateLimiter == nil && shared.QPS > 0 {
		if shared.Burst <= 0 {
			return nil, errors.New("the burst of requests must be more than 0")
		}
		shared.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(shared.QPS, shared.Burst)
	}
	known := runtime.NewScheme()
	metav1.AddToGroupVersion(known, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, authenticationv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme,
	} {
		if err := add(known); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	c := connections{known: known, versions: map[schema.GroupVersion]rest.Interface{}}
	for _, version := range []schema.GroupVersion{
		admissionregistrationv1.SchemeGroupVersion, authenticationv1.SchemeGroupVersion, coordinationv1.SchemeGroupVersion, corev1.SchemeGroupVersion,
		discoveryv1.SchemeGroupVersion, networkingv1.SchemeGroupVersion,
	} {
		if err := c.add(version, &shared, over); err != nil {
			return nil, fmt.Errorf("make a client for %s: %w", version, err)
		}
	}
	return c.clients(), nil
}

// connections are the clients of group versions.
type connections struct {
	known    *runtime.Scheme
	versions map[schema.GroupVersion]rest.Interface
}

func (c connections) add(version schema.GroupVersion, config *rest.Config, over *http.Client) error {
	own := *config
	own.GroupVersion, own.APIPath = &version, "/apis"
	if version.Group == "" {
		own.APIPath = "/api"
	}
	own.NegotiatedSerializer = serializer.NewCodecFactory(c.known).WithoutConversion()
	client, err := rest.RESTClientForConfigAndClient(&own, over)
	c.versions[version] = client
	return err
}

func (c connections) clients() *Clients {
	core, networking, registration := corev1.SchemeGroupVersion, networkingv1.SchemeGroupVersion, admissionregistrationv1.SchemeGroupVersion
	return &Clients{
		Pods:           namespaced[corev1.Pod, corev1.PodList](c, core, "pods"),
		Services:       namespaced[corev1.Service, corev1.ServiceList](c, core, "services"),
		Secrets:        namespaced[corev1.Secret, corev1.SecretList](c, core, "secrets"),
		ConfigMaps:     namespaced[corev1.ConfigMap, corev1.ConfigMapList](c, core, "configmaps"),
		Events:         namespaced[corev1.Event, corev1.EventList](c, core, "events"),
		Nodes:          ofCluster[corev1.Node, corev1.NodeList](c, core, "nodes"),
		Namespaces:     ofCluster[corev1.Namespace, corev1.NamespaceList](c, core, "namespaces"),
		IngressClasses: ofCluster[networkingv1.IngressClass, networkingv1.IngressClassList](c, networking, "ingressclasses"),
		EndpointSlices: namespaced[discoveryv1.EndpointSlice, discoveryv1.EndpointSliceList](c, discoveryv1.SchemeGroupVersion, "endpointslices"),
		Leases:         namespaced[coordinationv1.Lease, coordinationv1.LeaseList](c, coordinationv1.SchemeGroupVersion, "leases"),
		Ingresses: func(namespace string) WithStatus[*networkingv1.Ingress, *networkingv1.IngressList] {
			return resource[networkingv1.Ingress, networkingv1.IngressList](c, networking, "ingresses", namespace)
		},
		TokenReviews: func() Review[*authenticationv1.TokenReview] {
			// There is no list of them.
			return resource[authenticationv1.TokenReview, metav1.Status](c, authenticationv1.SchemeGroupVersion, "tokenreviews", "")
		},
		ValidatingWebhookConfigurations: ofCluster[admissionregistrationv1.ValidatingWebhookConfiguration, admissionregistrationv1.ValidatingWebhookConfigurationList](c, registration, "validatingwebhookconfigurations"),
		MutatingWebhookConfigurations:   ofCluster[admissionregistrationv1.MutatingWebhookConfiguration, admissionregistrationv1.MutatingWebhookConfigurationList](c, registration, "mutatingwebhookconfigurations"),
	}
}

func resource[T, L any, PT object[T], PL list[L]](c connections, version schema.GroupVersion, name, namespace string) typed[T, L, PT, PL] {
	return typed[T, L, PT, PL]{c.versions[version], runtime.NewParameterCodec(c.known), name, namespace}
}

func namespaced[T, L any, PT object[T], PL list[L]](c connections, version schema.GroupVersion, name string) func(string) Resource[PT, PL] {
	return func(namespace string) Resource[PT, PL] { return resource[T, L, PT, PL](c, version, name, namespace) }
}

func ofCluster[T, L any, PT object[T], PL list[L]](c connections, version schema.GroupVersion, name string) func() Resource[PT, PL] {
	return func() Resource[PT, PL] { return resource[T, L, PT, PL](c, version, name, "") }
}
