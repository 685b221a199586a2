package store

import (
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/model"
)

// classAnnotation is the older way to name an Ingress's class.
const classAnnotation = "kubernetes.io/ingress.class"

// An ingress is an Ingress and what the indexes hold of it.
type ingress struct {
	object *networkingv1.Ingress
	// ours tells whether its class is ours; only then it has references.
	ours       bool
	references build.References
}

// A reference is one Ingress's use of a backend. A backend exists as long as
// there is one.
type reference struct {
	key  string
	user *ingress
}

func (s *Store) applyIngress(object *networkingv1.Ingress, deleted bool) []Key {
	name := nameOf(object)
	known := s.ingresses[name]
	if deleted {
		if known == nil {
			return nil
		}
		s.indexClass(known, s.byClass.remove)
		delete(s.ingresses, name)
		return s.reindex(known, nil)
	}
	if known == nil {
		known = &ingress{object: object}
		s.ingresses[name] = known
		s.indexClass(known, s.byClass.add)
		return s.reindex(known, object)
	}
	if sameIngress(known.object, object) {
		known.object = object
		return nil
	}
	s.indexClass(known, s.byClass.remove)
	known.object = object
	s.indexClass(known, s.byClass.add)
	return s.reindex(known, object)
}

// indexClass adds or removes an Ingress that names its class in its spec.
func (s *Store) indexClass(ing *ingress, do func(string, *ingress)) {
	if class := ing.object.Spec.IngressClassName; class != nil {
		do(*class, ing)
	}
}

// reindex puts the references of a new version, nil for none, in the place of
// the old ones. It touches the hosts of both, and the backends that came into
// use or went out of it.
func (s *Store) reindex(ing *ingress, object *networkingv1.Ingress) []Key {
	old := ing.references
	ing.ours, ing.references = false, build.References{}
	if object != nil && s.isOurs(object) {
		ing.ours, ing.references = true, s.refer(object)
	}
	now := ing.references
	touched := s.namesOf(nil, old)
	replace(s.byHost, old.Hosts, now.Hosts, ing)
	replace(s.byAlias, old.Aliases, now.Aliases, ing)
	replace(s.bySecret, old.Secrets, now.Secrets, ing)
	touched = s.namesOf(touched, now)
	for _, host := range slices.Concat(old.Hosts, now.Hosts) {
		touched = append(touched, Key{HostUnit, host})
	}
	for _, secret := range slices.Concat(old.Secrets, now.Secrets) {
		s.doubted[secret] = struct{}{}
	}
	return append(touched, s.reindexBackends(ing, old.Backends)...)
}

// namesOf appends the names that an Ingress with these references may decide
// on: those of its hosts, and the aliases of all Ingresses of these, since
// only the oldest of them gives a host its aliases.
func (s *Store) namesOf(keys []Key, refs build.References) []Key {
	for _, host := range refs.Hosts {
		keys = append(keys, Key{NameUnit, host})
		if _, alias := s.byAlias[host]; alias {
			keys = append(keys, aliasKey(host))
		}
		for _, other := range s.byHost[host] {
			keys = appendAliases(keys, other.references.Aliases)
		}
	}
	return appendAliases(keys, refs.Aliases)
}

func appendAliases(keys []Key, aliases []string) []Key {
	for _, alias := range aliases {
		keys = append(keys, aliasKey(alias))
	}
	return keys
}

// aliasKey is the unit that an alias is in.
func aliasKey(alias string) Key {
	if model.KindOfAlias(alias) == model.OneName {
		return Key{NameUnit, alias}
	}
	return Key{Kind: NamePatternsUnit}
}

// replace moves a value of an index from under its old keys to new ones.
func replace[K comparable](x index[K, *ingress], old, now []K, value *ingress) {
	for _, key := range old {
		x.remove(key, value)
	}
	for _, key := range now {
		x.add(key, value)
	}
}

func (s *Store) reindexBackends(ing *ingress, old []build.BackendReference) []Key {
	var touched []Key
	now := ing.references.Backends
	for _, ref := range now {
		if slices.Contains(old, ref) {
			continue
		}
		if !s.inUse(ref) {
			touched = append(touched, Key{BackendUnit, ref.Key})
		}
		s.backends.add(ref.Service, reference{ref.Key, ing})
	}
	for _, ref := range old {
		if slices.Contains(now, ref) {
			continue
		}
		s.backends.remove(ref.Service, reference{ref.Key, ing})
		if !s.inUse(ref) {
			touched = append(touched, Key{BackendUnit, ref.Key})
		}
	}
	return touched
}

func (s *Store) inUse(ref build.BackendReference) bool {
	return slices.ContainsFunc(s.backends[ref.Service], func(b reference) bool { return b.key == ref.Key })
}

// sameIngress compares what is read of an Ingress.
func sameIngress(a, b *networkingv1.Ingress) bool {
	return a.CreationTimestamp.Equal(&b.CreationTimestamp) &&
		maps.Equal(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

func (s *Store) applyClass(object *networkingv1.IngressClass, deleted bool) []Key {
	was := put(s.classes, object.Name, object, deleted)
	if deleted && was == nil || !deleted && was != nil && was.Spec.Controller == object.Spec.Controller {
		return nil
	}
	var touched []Key
	for _, ing := range s.byClass[object.Name] {
		if ing.ours != s.isOurs(ing.object) {
			touched = append(touched, s.reindex(ing, ing.object)...)
		}
	}
	return touched
}

// isOurs tells whether an Ingress is ours by its class. The field goes before
// the annotation, which is not looked at where the field is set.
func (s *Store) isOurs(ing *networkingv1.Ingress) bool {
	if name := ing.Spec.IngressClassName; name != nil {
		if class := s.classes[*name]; class != nil {
			return class.Spec.Controller == s.settings.ControllerClass ||
				s.settings.ClassByName && *name == s.settings.IngressClass
		}
		return s.settings.Classless && *name == s.settings.IngressClass
	}
	if name, ok := ing.Annotations[classAnnotation]; ok {
		return name == s.settings.IngressClass
	}
	return s.settings.WatchWithoutClass || s.settings.Classless
}
