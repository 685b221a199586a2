package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/cluster/permission"
)

const listWatch = "list watch"

// needs are the permissions of a source.
type needs struct {
	ingresses, classes, services, slices, certificates, secrets permission.Permission
	// configMaps are followed once an Ingress names one.
	configMaps permission.Permission
	// namespaces are followed, and namespace is checked once, if the settings
	// require it; configMap, node and pod if there is one.
	namespaces, namespace, configMap, node, pod permission.Permission
	// streams are for ConfigMaps with TCP and UDP services.
	streams []permission.Permission
}

// services are the ConfigMaps with TCP and UDP services that are followed besides ConfigMap,
// each once.
func (s Settings) services() []types.NamespacedName {
	var list []types.NamespacedName
	for _, name := range s.Services {
		if name.Name != "" && name != s.ConfigMap && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// follows reports whether a ConfigMap is followed.
func (s Settings) follows(name types.NamespacedName) bool {
	return name == s.ConfigMap || slices.Contains(s.Services, name)
}

func (s Settings) needs() needs {
	in := func(group, resource, verbs, need, without string) permission.Permission {
		return permission.Permission{
			Resource: resource, Group: group, Namespace: s.Namespace, Verbs: verbs, Need: need, Without: without,
		}
	}
	n := needs{
		ingresses: in(networkingv1.GroupName, "ingresses", listWatch, "to know which hosts and paths to serve", permission.NotReady),
		classes: in(networkingv1.GroupName, "ingressclasses", listWatch,
			"to know which Ingresses are Headgate's by their spec.ingressClassName",
			"spec.ingressClassName is ignored: only the annotation "+classAnnotation+" and --watch-ingress-without-class count"),
		services:     in(corev1.GroupName, "services", listWatch, "to know the ports of the Services that Ingresses name", permission.NotReady),
		slices:       in(discoveryv1.GroupName, "endpointslices", listWatch, "to know the endpoints of Services", permission.NotReady),
		certificates: in(corev1.GroupName, "secrets", listWatch, "to read the certificates in TLS Secrets", permission.NotReady),
		secrets:      in(corev1.GroupName, "secrets", listWatch, "to know when other Secrets that Ingresses name change", permission.NotReady),
		configMaps: in(corev1.GroupName, "configmaps", listWatch, "to know the ConfigMaps that Ingresses and keys name, and when they change",
			"ConfigMaps that Ingresses and keys name count as missing"),
		namespaces: in(corev1.GroupName, "namespaces", listWatch, "to know the labels that --watch-namespace-selector selects by, and the groups of edges", permission.NotReady),
		namespace: in(corev1.GroupName, "namespaces", "get", "to check that the namespace to watch exists",
			"the namespace is watched even if it does not exist"),
		configMap: in(corev1.GroupName, "configmaps", listWatch, "to read the options in ConfigMap "+s.ConfigMap.String(), permission.NotReady),
		pod:       in(corev1.GroupName, "pods", "list", "to know which Node Headgate's Pod runs on", unzoned),
		node:      in(corev1.GroupName, "nodes", listWatch, "to know the zone of the Node that Headgate runs on", unzoned),
	}
	n.classes.Namespace, n.namespaces.Namespace, n.node.Namespace = "", "", ""
	n.namespace.Name = s.Namespace
	n.configMap.Namespace, n.configMap.Name = s.ConfigMap.Namespace, s.ConfigMap.Name
	n.pod.Namespace = s.Pod.Namespace
	for _, name := range s.services() {
		one := in(corev1.GroupName, "configmaps", listWatch, "to read the TCP or UDP services in ConfigMap "+name.String(), permission.NotReady)
		one.Namespace, one.Name = name.Namespace, name.Name
		n.streams = append(n.streams, one)
	}
	return n
}

// Permissions are those of a source with these settings. It also works without
// those that are not required, and logs the effect.
func Permissions(s Settings) []permission.Permission {
	n := s.needs()
	list := []permission.Permission{n.ingresses, n.classes, n.services, n.slices, n.certificates, n.secrets}
	if s.Namespaces {
		list = append(list, n.namespaces)
	}
	if s.Namespace != "" {
		list = append(list, n.namespace)
	}
	if s.ConfigMap.Name != "" {
		list = append(list, n.configMap)
	}
	list = append(list, n.streams...)
	if s.Pod.Name != "" {
		list = append(list, n.pod, n.node)
	}
	return append(list, n.configMaps)
}
