package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// resources lists the resources that are followed.
func (s *Source) resources() []*reflection {
	namespace := s.settings.Namespace
	objects := s.settings.Clients.Objects
	core, networking, discovery := objects.CoreV1(), objects.NetworkingV1(), objects.DiscoveryV1()

	s.ingresses = newMirror(s.trim, s.ingressChanged)
	s.classes = newMirror(s.trim, s.changed)
	need := s.settings.needs()
	list := []*reflection{
		{
			Permission: need.ingresses, object: &networkingv1.Ingress{}, mirror: s.ingresses,
			requests: requestsOf(networking.Ingresses(namespace), ""),
		},
		{
			Permission: need.classes, object: &networkingv1.IngressClass{}, mirror: s.classes,
			requests: requestsOf(networking.IngressClasses(), ""), refused: s.refuseClasses,
		},
		{
			Permission: need.services, object: &corev1.Service{}, mirror: newMirror(s.trim, s.changed),
			requests: requestsOf(core.Services(namespace), ""),
		},
		{
			Permission: need.slices, object: &discoveryv1.EndpointSlice{}, mirror: newMirror(s.trim, s.changed),
			requests: requestsOf(discovery.EndpointSlices(namespace), ""),
		},
		{
			Permission: need.certificates, object: &corev1.Secret{}, mirror: newMirror(s.trim, s.secrets.tlsChanged),
			requests: requestsOf(core.Secrets(namespace), fields.OneTermEqualSelector("type", string(corev1.SecretTypeTLS)).String()),
		},
		{
			Permission: need.secrets, object: &metav1.PartialObjectMetadata{}, mirror: s.secrets.fetcher.metadata,
			requests: requestsOf(s.settings.Clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace), otherSecrets().String()),
		},
	}
	if s.settings.Namespaces {
		list = append(list, &reflection{
			Permission: need.namespaces, object: &corev1.Namespace{}, mirror: newMirror(s.trim, s.changed),
			requests: requestsOf(core.Namespaces(), ""),
		})
	}
	if name := s.settings.ConfigMap; name.Name != "" {
		list = append(list, &reflection{
			Permission: need.configMap, object: &corev1.ConfigMap{}, mirror: newMirror(s.trim, s.changed),
			requests: requestsOf(core.ConfigMaps(name.Namespace), fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name).String()),
		})
	}
	return list
}

// requests are those that follow a resource.
type requests struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// A lister is the client of one resource, with its own type of list.
type lister[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func requestsOf[L runtime.Object](client lister[L], selector string) requests {
	return requests{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return client.List(ctx, options)
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return client.Watch(ctx, options)
		},
	}
}
