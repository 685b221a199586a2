package manifest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	oldv1 "k8s.io/api/networking/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// newObject makes an empty object of a kind that is decoded, and nil for others.
func newObject(apiVersion, kind string) metav1.Object {
	switch apiVersion + " " + kind {
	case "networking.k8s.io/v1 Ingress":
		return &networkingv1.Ingress{}
	case "extensions/v1beta1 Ingress", "networking.k8s.io/v1beta1 Ingress":
		// Both have the same fields.
		return &oldv1.Ingress{}
	case "networking.k8s.io/v1beta1 IngressClass":
		return &oldv1.IngressClass{}
	case "networking.k8s.io/v1 IngressClass":
		return &networkingv1.IngressClass{}
	case "discovery.k8s.io/v1 EndpointSlice":
		return &discoveryv1.EndpointSlice{}
	case "v1 Endpoints":
		return &Endpoints{}
	case "v1 Service":
		return &corev1.Service{}
	case "v1 Secret":
		return &corev1.Secret{}
	case "v1 ConfigMap":
		return &corev1.ConfigMap{}
	case "v1 Namespace":
		return &corev1.Namespace{}
	}
	return nil
}

// itemKind is the kind of the items of a list that have no kind of their own: an
// IngressList has Ingresses, a List any objects.
func itemKind(apiVersion, kind string) (header, bool) {
	if apiVersion == "v1" && kind == "List" {
		return header{}, true
	}
	single, isList := strings.CutSuffix(kind, "List")
	if !isList || newObject(apiVersion, single) == nil {
		return header{}, false
	}
	return header{APIVersion: apiVersion, Kind: single}, true
}

// clustered reports whether the object belongs to no namespace.
func clustered(o metav1.Object) bool {
	switch o.(type) {
	case *networkingv1.IngressClass, *corev1.Namespace:
		return true
	}
	return false
}

// complete sets the defaults that the API server sets, for the fields that are
// read, and removes fields that only the API server needs. The object is then the
// same as one from the API server.
func complete(o metav1.Object) {
	switch o := o.(type) {
	case *corev1.Secret:
		completeSecret(o)
	case *corev1.Service:
		completeService(o)
	case *discoveryv1.EndpointSlice:
		completeSlice(o)
	}
	o.(runtime.Object).GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	o.SetManagedFields(nil)
	switch {
	case clustered(o):
		o.SetNamespace("")
	case o.GetNamespace() == "":
		o.SetNamespace(metav1.NamespaceDefault)
	}
}

func completeSecret(o *corev1.Secret) {
	if o.Type == "" {
		o.Type = corev1.SecretTypeOpaque
	}
	if len(o.StringData) > 0 && o.Data == nil {
		o.Data = make(map[string][]byte, len(o.StringData))
	}
	for k, v := range o.StringData {
		o.Data[k] = []byte(v)
	}
	o.StringData = nil
}

func completeService(o *corev1.Service) {
	if o.Spec.Type == "" {
		o.Spec.Type = corev1.ServiceTypeClusterIP
	}
	for i := range o.Spec.Ports {
		p := &o.Spec.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == intstr.FromInt32(0) || p.TargetPort == intstr.FromString("") {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
}

func completeSlice(o *discoveryv1.EndpointSlice) {
	for i := range o.Ports {
		p := &o.Ports[i]
		if p.Name == nil {
			p.Name = new(string)
		}
		if p.Protocol == nil {
			p.Protocol = new(corev1.ProtocolTCP)
		}
	}
}
