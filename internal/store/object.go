package store

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/unit"
)

// applySecret touches the names of the Ingresses that have the Secret in their
// spec.tls, the hosts of those that refer to it by an annotation, and the
// default certificate if it is that one.
func (s *Store) applySecret(object *corev1.Secret, deleted bool) []unit.Key {
	name := nameOf(object)
	if _, changed := put(s.secrets, name, object, deleted); !changed {
		return nil
	}
	s.indexIssuers(name, object, deleted)
	return s.usersOf(s.certificateUsers(nil, name), referenceTo(feature.Secret, name))
}

// certificateUsers appends the units that the certificate of a Secret is part
// of.
func (s *Store) certificateUsers(keys []unit.Key, secret types.NamespacedName) []unit.Key {
	if secret == s.settings.DefaultCertificate {
		keys = append(keys, unit.DefaultCertificateKey)
	}
	for _, ing := range s.bySecret[secret] {
		keys = s.namesOf(keys, ing.references)
	}
	return keys
}

// usersOf appends the hosts of the Ingresses that refer to an object by an
// annotation, the backends of those that say something of backends, and the globals if the
// options refer to it.
func (s *Store) usersOf(keys []unit.Key, ref feature.Reference) []unit.Key {
	if slices.Contains(s.optionObjects, ref) {
		keys = append(keys, unit.GlobalsKey)
	}
	for _, ing := range s.byObject[ref] {
		for _, host := range ing.references.Hosts {
			keys = append(keys, unit.Host.Key(host))
		}
		if ing.references.SaysOfBackends {
			for _, backend := range ing.references.Backends {
				keys = append(keys, unit.Backend.Key(backend.Key))
			}
		}
	}
	return keys
}

// applyConfigMap touches what refers to the ConfigMap. The one with the options touches
// the globals, all hosts and all backends, since they contain its values.
func (s *Store) applyConfigMap(object *corev1.ConfigMap, deleted bool) []unit.Key {
	name := nameOf(object)
	was, changed := put(s.configMaps, name, object, deleted)
	if !changed {
		return nil
	}
	touched := s.usersOf(nil, referenceTo(feature.ConfigMap, name))
	touched = s.reindexStreams(touched, name, was)
	if name != s.settings.ConfigMap {
		return touched
	}
	touched = append(touched, s.applyOptions()...)
	for _, key := range s.All() {
		if key.Kind == unit.Globals || key.Kind == unit.Host || key.Kind == unit.Backend {
			touched = append(touched, key)
		}
	}
	return touched
}

// applyOptions indexes what the options refer to and call now, touches everything if
// names begin or cease to belong to a namespace, and indexes the Ingresses
// whose references differ under the options: an administrator may forbid
// annotations.
func (s *Store) applyOptions() []unit.Key {
	options := s.refer(nil, s.ConfigMap())
	touched := s.reindexUses(nil, s.optionCalls, options.Calls, true)
	s.optionCalls = options.Calls
	for _, ref := range slices.Concat(s.optionObjects, options.Objects) {
		s.markObjectDirty(ref)
	}
	s.optionObjects = options.Objects
	if own := options.OwnHosts || s.settings.OwnHosts; own != s.ownHosts {
		s.ownHosts = own
		touched = append(touched, s.All()...)
	}
	for _, ing := range s.ingresses {
		if ing.ours && !reflect.DeepEqual(ing.references, s.refer(ing.object, s.ConfigMap())) {
			touched = append(touched, s.reindex(ing, ing.object)...)
		}
	}
	return touched
}
