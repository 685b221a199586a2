package store

import (
	"bytes"
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// unchanged tells whether a change of an object changes nothing that is read
// of it: the deletion of one that was not there, or an equal version.
func unchanged[O any](was, now *O, deleted bool, same func(a, b *O) bool) bool {
	if was == nil || deleted {
		return was == nil && deleted
	}
	return same(was, now)
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

func sameSecret(a, b *corev1.Secret) bool {
	return maps.EqualFunc(a.Data, b.Data, bytes.Equal)
}

// applyConfigMap touches the globals, every host and every backend: the
// options' values are baked into them.
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
		if key.Kind == GlobalsUnit || key.Kind == HostUnit || key.Kind == BackendUnit {
			touched = append(touched, key)
		}
	}
	return touched
}

func sameConfigMap(a, b *corev1.ConfigMap) bool {
	return maps.Equal(a.Data, b.Data)
}
