package store

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
)

// Ingresses are those of our class that name the host, in no order.
func (s *Store) Ingresses(host string) []*networkingv1.Ingress {
	list := make([]*networkingv1.Ingress, 0, len(s.byHost[host]))
	for _, ing := range s.byHost[host] {
		list = append(list, ing.object)
	}
	return list
}

// Service is nil if there is none of that name.
func (s *Store) Service(name types.NamespacedName) *corev1.Service { return s.services[name] }

// EndpointSlices are those of the named Service, in no order. The list is the
// Store's own.
func (s *Store) EndpointSlices(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	return s.slicesOfTarget[service]
}

// Secret is nil if there is none of that name.
func (s *Store) Secret(name types.NamespacedName) *corev1.Secret { return s.secrets[name] }

// ConfigMap is the one with Headgate's options, nil if there is none.
func (s *Store) ConfigMap() *corev1.ConfigMap { return s.configMap }

// Referenced tells whether an Ingress of our class refers to the backend.
func (s *Store) Referenced(backendKey string) bool {
	service, _, ok := build.SplitKey(backendKey)
	return ok && s.inUse(build.BackendReference{Key: backendKey, Service: service})
}
