package kube

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// A resource is what is asked of the API server, and why.
type resource struct {
	name, group string
	// namespace is empty for all, or for what has none.
	namespace string
	// need says what it is needed for, without what happens without it.
	need, without string
}

func (r resource) String() string { return strings.TrimSuffix(r.name+"."+r.group, ".") }

const notReady = "Headgate does not become ready"

// resources lists what is followed.
func (s *Source) resources() []*reflection {
	namespace := s.settings.Namespace
	objects := s.settings.Clients.Objects
	core, networking, discovery := objects.CoreV1(), objects.NetworkingV1(), objects.DiscoveryV1()

	s.ingresses = newMirror(s.trim, s.ingressChanged)
	s.classes = newMirror(s.trim, s.changed)
	list := []*reflection{
		{
			resource: resource{"ingresses", networkingv1.GroupName, namespace, "to know which hosts and paths to serve", notReady},
			object:   &networkingv1.Ingress{}, mirror: s.ingresses,
			requests: requestsOf(networking.Ingresses(namespace), ""),
		},
		{
			resource: resource{
				"ingressclasses", networkingv1.GroupName, "", "to know which Ingresses are Headgate's by their spec.ingressClassName",
				"spec.ingressClassName is not looked at: only the annotation " + classAnnotation + " and --watch-ingress-without-class count",
			},
			object: &networkingv1.IngressClass{}, mirror: s.classes,
			requests: requestsOf(networking.IngressClasses(), ""), refused: s.refuseClasses,
		},
		{
			resource: resource{"services", "", namespace, "to know the ports of the Services that Ingresses name", notReady},
			object:   &corev1.Service{}, mirror: newMirror(s.trim, s.changed),
			requests: requestsOf(core.Services(namespace), ""),
		},
		{
			resource: resource{"endpointslices", discoveryv1.GroupName, namespace, "to know the endpoints of Services", notReady},
			object:   &discoveryv1.EndpointSlice{}, mirror: newMirror(s.trim, s.changed),
			requests: requestsOf(discovery.EndpointSlices(namespace), ""),
		},
		{
			resource: resource{"secrets", "", namespace, "to have the certificates of TLS Secrets", notReady},
			object:   &corev1.Secret{}, mirror: newMirror(s.trim, s.secrets.tlsChanged),
			requests: requestsOf(core.Secrets(namespace), fields.OneTermEqualSelector("type", string(corev1.SecretTypeTLS)).String()),
		},
		{
			resource: resource{"secrets", "", namespace, "to know when other Secrets that Ingresses name change", notReady},
			object:   &metav1.PartialObjectMetadata{}, mirror: newMirror(s.trim, s.secrets.metadataChanged),
			requests: requestsOf(s.settings.Clients.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace), otherSecrets()),
		},
	}
	if s.settings.Namespaces {
		list = append(list, &reflection{
			resource: resource{"namespaces", "", "", "to know the labels that --watch-namespace-selector selects by", notReady},
			object:   &corev1.Namespace{}, mirror: newMirror(s.trim, s.changed),
			requests: requestsOf(core.Namespaces(), ""),
		})
	}
	if name := s.settings.ConfigMap; name.Name != "" {
		list = append(list, &reflection{
			resource: resource{"configmaps", "", name.Namespace, "to read the options in ConfigMap " + name.String(), notReady},
			object:   &corev1.ConfigMap{}, mirror: newMirror(s.trim, s.changed),
			requests: requestsOf(core.ConfigMaps(name.Namespace), fields.OneTermEqualSelector(metav1.ObjectNameField, name.Name).String()),
		})
	}
	return list
}

// otherSecrets selects the Secrets whose data is not followed. Those of Helm,
// which keeps its releases in them, can't be of use to an Ingress.
func otherSecrets() string {
	return fields.AndSelectors(
		fields.OneTermNotEqualSelector("type", string(corev1.SecretTypeTLS)),
		fields.OneTermNotEqualSelector("type", "helm.sh/release.v1"),
	).String()
}

// requests are the two by which a resource is followed.
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
