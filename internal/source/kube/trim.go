package kube

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/headgate/headgate/internal/ingressnginx"
	"github.com/headgate/headgate/internal/source"
)

// classAnnotation is the older way to name an Ingress's class.
const classAnnotation = "kubernetes.io/ingress.class"

// trim removes from an object the fields that are not read, in place. A version
// that differs only in these is not a change.
func (s *Source) trim(object metav1.Object) {
	switch o := object.(type) {
	case *networkingv1.Ingress:
		*o = networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name, UID: o.UID, CreationTimestamp: o.CreationTimestamp,
			Annotations: s.trimAnnotations(o.Annotations),
		}, Spec: o.Spec, Status: s.trimStatus(o.Status)}
	case *networkingv1.IngressClass:
		*o = networkingv1.IngressClass{
			ObjectMeta: metav1.ObjectMeta{Name: o.Name},
			Spec:       networkingv1.IngressClassSpec{Controller: o.Spec.Controller},
		}
	case *corev1.Namespace:
		*o = corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Labels: o.Labels, Annotations: onlyGroup(o.Annotations)}}
	case *corev1.Service:
		s.trimService(o)
	case *discoveryv1.EndpointSlice:
		s.trimSlice(o)
	case *corev1.Node:
		*o = corev1.Node{ObjectMeta: withLabel(o, corev1.LabelTopologyZone)}
	case *corev1.Secret:
		// Which keys are read depends on the references to it.
		*o = corev1.Secret{ObjectMeta: withUID(o), Data: o.Data}
	case *corev1.ConfigMap:
		*o = corev1.ConfigMap{ObjectMeta: withUID(o), Data: o.Data}
	case *metav1.PartialObjectMetadata:
		// A new version means that the data must be read again.
		version := o.ResourceVersion
		*o = metav1.PartialObjectMetadata{ObjectMeta: withUID(o)}
		o.ResourceVersion = version
	}
}

// withUID is for objects that Events are written about.
func withUID(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
}

// withLabel keeps one label.
func withLabel(o metav1.Object, label string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}
	if value, ok := o.GetLabels()[label]; ok {
		meta.Labels = map[string]string{label: value}
	}
	return meta
}

// onlyGroup keeps the annotation that says which edges get what a namespace has.
func onlyGroup(all map[string]string) map[string]string {
	group, ok := all[source.GroupAnnotation]
	if !ok {
		return nil
	}
	return map[string]string{source.GroupAnnotation: group}
}

func (s *Source) trimAnnotations(all map[string]string) map[string]string {
	maps.DeleteFunc(all, func(name, _ string) bool {
		// Those of the old prefix get a finding.
		return name != classAnnotation && !strings.HasPrefix(name, s.settings.AnnotationPrefix+"/") && !strings.HasPrefix(name, ingressnginx.OldPrefix+"/")
	})
	if len(all) == 0 {
		return nil
	}
	// The map may have had room for many more.
	return maps.Clone(all)
}

func (s *Source) trimStatus(all networkingv1.IngressStatus) (trimmed networkingv1.IngressStatus) {
	if entries := all.LoadBalancer.Ingress; s.settings.Status && len(entries) > 0 {
		list := make([]networkingv1.IngressLoadBalancerIngress, len(entries))
		for i, e := range entries {
			list[i] = networkingv1.IngressLoadBalancerIngress{IP: e.IP, Hostname: e.Hostname}
		}
		trimmed.LoadBalancer.Ingress = list
	}
	return trimmed
}

func (s *Source) trimService(o *corev1.Service) {
	ports := make([]corev1.ServicePort, len(o.Spec.Ports))
	for i, p := range o.Spec.Ports {
		ports[i] = corev1.ServicePort{Name: p.Name, Protocol: p.Protocol, Port: p.Port, TargetPort: p.TargetPort, AppProtocol: p.AppProtocol}
	}
	meta, distribution := withUID(o), (*string)(nil)
	if s.zoned() {
		distribution = o.Spec.TrafficDistribution
		if mode, ok := o.Annotations[corev1.AnnotationTopologyMode]; ok {
			meta.Annotations = map[string]string{corev1.AnnotationTopologyMode: mode}
		}
	}
	*o = corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: o.Spec.Type, Ports: ports, ClusterIP: o.Spec.ClusterIP, ExternalName: o.Spec.ExternalName,
		TrafficDistribution: distribution,
	}}
}

func (s *Source) trimSlice(o *discoveryv1.EndpointSlice) {
	ports := make([]discoveryv1.EndpointPort, len(o.Ports))
	for i, p := range o.Ports {
		ports[i] = discoveryv1.EndpointPort{Name: p.Name, Protocol: p.Protocol, Port: p.Port}
	}
	// An endpoint without the condition is ready. All endpoints share the same
	// false and true.
	no, yes := new(bool), new(true)
	endpoints := make([]discoveryv1.Endpoint, len(o.Endpoints))
	for i, e := range o.Endpoints {
		endpoints[i].Addresses = e.Addresses
		if !ptr.Deref(e.Conditions.Ready, true) {
			endpoints[i].Conditions.Ready = no
			if ptr.Deref(e.Conditions.Serving, false) && ptr.Deref(e.Conditions.Terminating, false) {
				endpoints[i].Conditions.Serving, endpoints[i].Conditions.Terminating = yes, yes
			}
		}
		if s.zoned() && e.Hints != nil {
			endpoints[i].Hints = &discoveryv1.EndpointHints{ForZones: e.Hints.ForZones}
		}
	}
	*o = discoveryv1.EndpointSlice{
		ObjectMeta: withLabel(o, discoveryv1.LabelServiceName), AddressType: o.AddressType, Endpoints: endpoints, Ports: ports,
	}
}
