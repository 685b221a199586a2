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
	namespace, clients, need := s.settings.Namespace, s.settings.Clients, s.settings.needs()
	objects := clients.Objects
	secrets := clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace)

	mirror := func() *mirror { return newMirror(s.trim, s.changed) }
	s.ingresses, s.classes = newMirror(s.trim, s.ingressChanged), mirror()
	list := []*reflection{
		{need.ingresses, &networkingv1.Ingress{}, s.ingresses, requestsOf(objects.Ingresses(namespace), ""), nil},
		{need.classes, &networkingv1.IngressClass{}, s.classes, requestsOf(objects.IngressClasses(), ""), s.refuseClasses},
		{need.services, &corev1.Service{}, mirror(), requestsOf(objects.Services(namespace), ""), nil},
		{need.slices, &discoveryv1.EndpointSlice{}, mirror(), requestsOf(objects.EndpointSlices(namespace), ""), nil},
		{
			need.certificates, &corev1.Secret{}, newMirror(s.trim, s.secrets.tlsChanged),
			requestsOf(objects.Secrets(namespace), fields.OneTermEqualSelector("type", string(corev1.SecretTypeTLS)).String()), nil,
		},
		{need.secrets, &metav1.PartialObjectMetadata{}, s.secrets.fetcher.metadata, requestsOf(secrets, otherSecrets().String()), nil},
	}
	if s.settings.Namespaces {
		list = append(list, &reflection{need.namespaces, &corev1.Namespace{}, mirror(), requestsOf(objects.Namespaces(), ""), nil})
	}
	if name := s.settings.ConfigMap; name.Name != "" {
		one := requestsOf(objects.ConfigMaps(name.Namespace), named(name.Name).String())
		list = append(list, &reflection{need.configMap, &corev1.ConfigMap{}, mirror(), one, nil})
	}
	for i, name := range s.settings.services() {
		one := requestsOf(objects.ConfigMaps(name.Namespace), named(name.Name).String())
		list = append(list, &reflection{need.streams[i], &corev1.ConfigMap{}, mirror(), one, nil})
	}
	return list
}

func named(name string) fields.Selector {
	return fields.OneTermEqualSelector(metav1.ObjectNameField, name)
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
