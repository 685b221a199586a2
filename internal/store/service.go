package store

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/endpoint"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/unit"
)

func (s *Store) applyService(object *corev1.Service, deleted bool) []unit.Key {
	name := nameOf(object)
	was := put(s.services, name, object, deleted)
	if unchanged(was, object, deleted, sameService) {
		return nil
	}
	if was != nil {
		s.indexExternalName(was, s.byExternalName.remove)
	}
	if !deleted {
		s.indexExternalName(object, s.byExternalName.add)
	}
	return s.appendBackends(nil, name)
}

// sameService compares the fields of a Service that are read.
func sameService(a, b *corev1.Service) bool {
	return a.Spec.Type == b.Spec.Type && a.Spec.ClusterIP == b.Spec.ClusterIP && a.Spec.ExternalName == b.Spec.ExternalName &&
		endpoint.NearnessOf(a) == endpoint.NearnessOf(b) && equality.Semantic.DeepEqual(a.Spec.Ports, b.Spec.Ports)
}

// externalName is the DNS name to look up for the Service.
func (s *Store) externalName(service *corev1.Service) (name string, ok bool) {
	name, ok = endpoint.ExternalName(service)
	return name, ok && !s.settings.NoExternalNames
}

// indexExternalName adds or removes a Service of type ExternalName.
func (s *Store) indexExternalName(service *corev1.Service, do func(string, types.NamespacedName)) {
	if name, ok := s.externalName(service); ok {
		do(name, nameOf(service))
		s.wantedNames.markDirty(name)
	}
}

func (s *Store) applyAddresses(object *source.Addresses, deleted bool) []unit.Key {
	if was := put(s.addresses, object.Name, object, deleted); unchanged(was, object, deleted, sameAddresses) {
		return nil
	}
	var touched []unit.Key
	for _, service := range s.byExternalName[object.Name] {
		touched = s.appendBackends(touched, service)
	}
	return s.appendBackends(touched, outside(object.Name))
}

// outside is the key of backends of a DNS name or address, which have no Service.
func outside(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: model.NoNamespace, Name: name}
}

func sameAddresses(a, b *source.Addresses) bool {
	return slices.Equal(a.Addresses, b.Addresses) && slices.Equal(a.Refused, b.Refused) && a.Problem == b.Problem
}

// applyNode applies the Node that Headgate runs on.
func (s *Store) applyNode(object *corev1.Node, deleted bool) []unit.Key {
	zone := object.Labels[corev1.LabelTopologyZone]
	if deleted {
		zone = ""
	}
	if zone == s.zone {
		return nil
	}
	s.zone = zone
	return s.appendAllBackends(nil)
}

// appendBackends appends the backends of the Service that are in use. A backend
// that several Ingresses use is appended several times.
func (s *Store) appendBackends(keys []unit.Key, service types.NamespacedName) []unit.Key {
	for _, b := range s.backends[service] {
		keys = append(keys, unit.Backend.Key(b.key))
	}
	for _, ref := range s.optionCalls {
		if ref.Service == service {
			keys = append(keys, unit.Backend.Key(ref.Key))
		}
	}
	if service.Name != "" && service == s.settings.DefaultBackend {
		keys = append(keys, unit.Backend.Key(model.BackendKey(service.Namespace, service.Name, model.FirstPort)))
	}
	return keys
}

// appendAllBackends appends all backends that are in use.
func (s *Store) appendAllBackends(keys []unit.Key) []unit.Key {
	for service := range s.backends {
		keys = s.appendBackends(keys, service)
	}
	for _, ref := range s.optionCalls {
		keys = append(keys, unit.Backend.Key(ref.Key))
	}
	return s.appendBackends(keys, s.settings.DefaultBackend)
}

func (s *Store) applySlice(object *discoveryv1.EndpointSlice, deleted bool) []unit.Key {
	was := put(s.slices, nameOf(object), object, deleted)
	same := unchanged(was, object, deleted, sameSlice)
	var touched []unit.Key
	if was != nil {
		service := serviceOf(was)
		s.slicesOfTarget.remove(service, was)
		touched = s.appendBackends(touched, service)
	}
	if !deleted {
		service := serviceOf(object)
		s.slicesOfTarget.add(service, object)
		touched = s.appendBackends(touched, service)
	}
	if same {
		return nil
	}
	return touched
}

func serviceOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
}

// sameSlice compares the fields of a slice that are read: the addresses,
// readiness and zone hints of its endpoints.
func sameSlice(a, b *discoveryv1.EndpointSlice) bool {
	return serviceOf(a) == serviceOf(b) && a.AddressType == b.AddressType &&
		equality.Semantic.DeepEqual(a.Ports, b.Ports) &&
		slices.EqualFunc(a.Endpoints, b.Endpoints, func(a, b discoveryv1.Endpoint) bool {
			return endpoint.ReadinessOf(&a) == endpoint.ReadinessOf(&b) && slices.Equal(a.Addresses, b.Addresses) &&
				slices.Equal(zonesOf(&a), zonesOf(&b))
		})
}

func zonesOf(e *discoveryv1.Endpoint) []discoveryv1.ForZone {
	if e.Hints == nil {
		return nil
	}
	return e.Hints.ForZones
}
