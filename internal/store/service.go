package store

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/endpoint"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/unit"
)

func (s *Store) applyService(object *corev1.Service, deleted bool) []unit.Key {
	name := nameOf(object)
	was, changed := put(s.services, name, object, deleted)
	if !changed {
		return nil
	}
	if was != nil {
		s.indexExternalName(was, s.byExternalName.remove)
	}
	if !deleted {
		s.indexExternalName(object, s.byExternalName.add)
	}
	return s.appendBackends(s.hostsByProtocol(was, s.services[name], name), name)
}

// hostsByProtocol are the hosts with a path to a port of the Service whose application
// protocol is another now. Nothing else of a Service is part of hosts.
func (s *Store) hostsByProtocol(was, now *corev1.Service, name types.NamespacedName) (keys []unit.Key) {
	before, after := endpoint.AppProtocols(was), endpoint.AppProtocols(now)
	if maps.Equal(before, after) {
		return nil
	}
	for _, b := range s.backends[name] {
		if _, port, _ := spec.SplitKey(b.key); b.call || before[port] == after[port] {
			continue
		}
		for _, host := range b.user.references.Hosts {
			keys = append(keys, unit.Host.Key(host))
		}
	}
	return keys
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
	if _, changed := put(s.addresses, object.Name, object, deleted); !changed {
		return nil
	}
	var touched []unit.Key
	for _, service := range s.byExternalName[object.Name] {
		touched = s.appendBackends(touched, service)
	}
	return s.appendBackends(touched, outside(object.Name))
}

// applyHealth touches the backend, if it is in use.
func (s *Store) applyHealth(object *source.Health, deleted bool) []unit.Key {
	if _, changed := put(s.health, object.Name, object, deleted); !changed || !s.Referenced(object.Name) {
		return nil
	}
	return []unit.Key{unit.Backend.Key(object.Name)}
}

// outside is the key of backends of a DNS name or address, which have no Service.
func outside(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: model.NoNamespace, Name: name}
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

// appendBackends appends the backends and streams of the Service that are in use. A backend
// that several Ingresses use is appended several times.
func (s *Store) appendBackends(keys []unit.Key, service types.NamespacedName) []unit.Key {
	for _, b := range s.backends[service] {
		keys = append(keys, unit.Backend.Key(b.key))
	}
	keys = append(keys, s.streams[service]...)
	if service.Name != "" && service == s.settings.DefaultBackend {
		keys = append(keys, unit.Backend.Key(model.BackendKey(service.Namespace, service.Name, model.FirstPort)))
	}
	return keys
}

// appendAllBackends appends all backends that are in use, and all streams.
func (s *Store) appendAllBackends(keys []unit.Key) []unit.Key {
	for service := range s.backends {
		keys = s.appendBackends(keys, service)
	}
	return s.appendStreams(s.appendBackends(keys, s.settings.DefaultBackend))
}

func (s *Store) applySlice(object *discoveryv1.EndpointSlice, deleted bool) []unit.Key {
	was, changed := put(s.slices, nameOf(object), object, deleted)
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
	if !changed {
		return nil
	}
	return touched
}

func serviceOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
}
