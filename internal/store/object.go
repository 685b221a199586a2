package store

import (
	"bytes"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/model"
)

// unchanged tells whether a change of an object changes nothing that is read
// of it: the deletion of one that was not there, or an equal version.
func unchanged[O any](was, now *O, deleted bool, same func(a, b *O) bool) bool {
	if was == nil || deleted {
		return was == nil && deleted
	}
	return same(was, now)
}

func (s *Store) applyService(object *corev1.Service, deleted bool) []Key {
	name := nameOf(object)
	if was := put(s.services, name, object, deleted); unchanged(was, object, deleted, sameService) {
		return nil
	}
	return s.appendBackends(nil, name)
}

func sameService(a, b *corev1.Service) bool {
	return a.Spec.Type == b.Spec.Type && equality.Semantic.DeepEqual(a.Spec.Ports, b.Spec.Ports)
}

// appendBackends appends the backends of the Service that are in use. A
// backend that several Ingresses use stands there several times.
func (s *Store) appendBackends(keys []Key, service types.NamespacedName) []Key {
	for _, b := range s.backends[service] {
		keys = append(keys, Key{BackendUnit, b.key})
	}
	if service.Name != "" && service == s.settings.DefaultBackend {
		keys = append(keys, Key{BackendUnit, model.BackendKey(service.Namespace, service.Name, model.FirstPort)})
	}
	return keys
}

func (s *Store) applySlice(object *discoveryv1.EndpointSlice, deleted bool) []Key {
	was := put(s.slices, nameOf(object), object, deleted)
	same := unchanged(was, object, deleted, sameSlice)
	var touched []Key
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

// sameSlice compares what is read of a slice: of its endpoints only addresses
// and readiness.
func sameSlice(a, b *discoveryv1.EndpointSlice) bool {
	return serviceOf(a) == serviceOf(b) && a.AddressType == b.AddressType &&
		equality.Semantic.DeepEqual(a.Ports, b.Ports) &&
		slices.EqualFunc(a.Endpoints, b.Endpoints, func(a, b discoveryv1.Endpoint) bool {
			return isReady(a) == isReady(b) && slices.Equal(a.Addresses, b.Addresses)
		})
}

func isReady(e discoveryv1.Endpoint) bool {
	return e.Conditions.Ready == nil || *e.Conditions.Ready
}

// applySecret touches the names of the Ingresses that refer to the Secret: it
// is part of no other unit.
func (s *Store) applySecret(object *corev1.Secret, deleted bool) []Key {
	name := nameOf(object)
	if was := put(s.secrets, name, object, deleted); unchanged(was, object, deleted, sameSecret) {
		return nil
	}
	var touched []Key
	for _, ing := range s.bySecret[name] {
		touched = s.namesOf(touched, ing.references)
	}
	return touched
}

// TakeReferences says which Secrets something refers to since the last call,
// and which nothing refers to any more. A source that does not give every
// Secret gives those that are referred to.
func (s *Store) TakeReferences() (added, removed []types.NamespacedName) {
	for secret := range s.doubted {
		_, was := s.wanted[secret]
		is := len(s.bySecret[secret]) > 0
		switch {
		case is && !was:
			s.wanted[secret] = struct{}{}
			added = append(added, secret)
		case was && !is:
			delete(s.wanted, secret)
			removed = append(removed, secret)
		}
	}
	clear(s.doubted)
	return added, removed
}

func sameSecret(a, b *corev1.Secret) bool {
	return maps.EqualFunc(a.Data, b.Data, bytes.Equal)
}

// applyConfigMap touches the globals and every host: the options' values are
// baked into the hosts.
func (s *Store) applyConfigMap(object *corev1.ConfigMap, deleted bool) []Key {
	if nameOf(object) != s.settings.ConfigMap {
		return nil
	}
	was := s.configMap
	s.configMap = object
	if deleted {
		s.configMap = nil
	}
	if unchanged(was, object, deleted, sameConfigMap) {
		return nil
	}
	var touched []Key
	for _, key := range s.All() {
		if key.Kind == GlobalsUnit || key.Kind == HostUnit {
			touched = append(touched, key)
		}
	}
	return touched
}

func sameConfigMap(a, b *corev1.ConfigMap) bool {
	return maps.Equal(a.Data, b.Data)
}
