package store

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// classAnnotation is the older way to name an Ingress's class.
const classAnnotation = "kubernetes.io/ingress.class"

// An ingress is an Ingress with its entries in the indexes.
type ingress struct {
	object *networkingv1.Ingress
	// ours is set if it is ours and not excluded; only then it has references.
	ours bool
	// refused is set if it would be ours, but is excluded because of its content.
	refused    bool
	references spec.References
	// origin is that of the version with these references.
	origin model.Origin
}

// A reference is the use of a backend by an Ingress, or by the ConfigMap with the
// options. A backend exists as long as there is one.
type reference struct {
	key string
	// user is nil for the options.
	user *ingress
	// call is set if the routes only call the backend besides their own one.
	call bool
}

func (s *Store) applyIngress(object *networkingv1.Ingress, deleted bool) []unit.Key {
	name := nameOf(object)
	known := s.ingresses[name]
	switch {
	case deleted && known == nil:
		return nil
	case known == nil:
		known = &ingress{}
		s.ingresses[name] = known
	case !deleted && sameIngress(known.object, object):
		known.object = object
		s.noteMoved(known, false)
		return nil
	default:
		s.indexClass(known, s.byClass.remove)
	}
	if deleted {
		delete(s.ingresses, name)
		return s.reindex(known, nil)
	}
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

// reindex replaces the references of an Ingress by those of a new version, nil
// for none. It touches the hosts of both, and the backends whose use begins or
// ends.
func (s *Store) reindex(ing *ingress, object *networkingv1.Ingress) []unit.Key {
	old, wasOurs, wasRefused := ing.references, ing.ours, ing.refused
	var now spec.References
	ours, refused := false, false
	if object != nil && s.isOurs(object) {
		if refused = s.settings.Scope.LeavesOut(object); !refused {
			ours, now = true, s.refer(object, s.ConfigMap())
		}
	}
	names := namesIn(old, now)
	coverings, claimed := s.coverings(names), map[string]bool{}
	for _, name := range names {
		claimed[name] = s.isClaimed(name)
	}
	ing.ours, ing.refused, ing.references, ing.origin = ours, refused, now, spec.Origin(ing.object)
	s.noteMoved(ing, wasOurs)
	touched := s.namesOf(nil, old)
	if wasRefused || ing.refused {
		touched = append(touched, refusalKey(nameOf(ing.object)))
	}
	replace(&s.byHost, old.Hosts, now.Hosts, ing)
	replace(&s.byAlias, old.Aliases, now.Aliases, ing)
	replace(&s.byRedirectAlias, old.RedirectAliases, now.RedirectAliases, ing)
	replace(&s.bySecret, old.Secrets, now.Secrets, ing)
	replace(&s.byObject, old.Objects, now.Objects, ing)
	s.indexBelow(names, claimed)
	touched = s.namesOf(touched, now)
	touched = s.appendOwned(touched, names, coverings)
	for _, host := range slices.Concat(old.Hosts, now.Hosts) {
		touched = append(touched, unit.Host.Key(host))
	}
	for _, secret := range slices.Concat(old.Secrets, now.Secrets) {
		s.markSecretDirty(secret)
	}
	for _, ref := range slices.Concat(old.Objects, now.Objects) {
		s.markObjectDirty(ref)
	}
	return append(touched, s.reindexBackends(ing, old)...)
}

// namesOf appends the names that depend on an Ingress with these references:
// those of its hosts, and the aliases of all Ingresses of these hosts, since only
// the oldest of them gives a host its aliases. The aliases of an Ingress are
// appended once, however many hosts it has.
func (s *Store) namesOf(keys []unit.Key, refs spec.References) []unit.Key {
	seen := map[*ingress]bool{}
	for _, host := range refs.Hosts {
		keys = append(keys, unit.Name.Key(host))
		if _, alias := s.byAlias[host]; alias {
			keys = append(keys, aliasKey(host))
		}
		// The www redirect alias uses the certificate of the host.
		if alias, ok := spec.RedirectAlias(host); ok && len(s.byRedirectAlias[alias]) > 0 {
			keys = append(keys, unit.Name.Key(alias))
		}
		for _, other := range s.byHost[host] {
			if len(other.references.Aliases) > 0 && !seen[other] {
				seen[other] = true
				keys = appendAliases(keys, other.references.Aliases)
			}
		}
	}
	for _, alias := range refs.RedirectAliases {
		keys = append(keys, unit.Name.Key(alias))
	}
	return appendAliases(keys, refs.Aliases)
}

func appendAliases(keys []unit.Key, aliases []string) []unit.Key {
	for _, alias := range aliases {
		keys = append(keys, aliasKey(alias))
	}
	return keys
}

// refusalKey is the unit of an Ingress that is excluded.
func refusalKey(name types.NamespacedName) unit.Key {
	return unit.Refusal.Key(name.String())
}

// aliasKey is the unit that an alias is in.
func aliasKey(alias string) unit.Key {
	if model.KindOfAlias(alias) == model.OneName {
		return unit.Name.Key(alias)
	}
	return unit.PatternsKey
}

// replace moves a value of an index from under its old keys to new ones.
func replace[K comparable](x *index[K, *ingress], old, now []K, value *ingress) {
	for _, key := range old {
		x.remove(key, value)
	}
	for _, key := range now {
		x.add(key, value)
	}
}

// reindexBackends touches the backends whose use begins or ends, those whose
// settings the Ingress may decide, and those with the names of its hosts: whether
// these are called depends on the routes of the hosts.
func (s *Store) reindexBackends(ing *ingress, old spec.References) []unit.Key {
	now := ing.references
	touched := s.reindexUses(ing, old.Backends, now.Backends, false)
	touched = append(touched, s.reindexUses(ing, old.Calls, now.Calls, true)...)
	for _, ref := range slices.Concat(old.Backends, now.Backends) {
		if old.SaysOfBackends || s.saysOf(ref) {
			touched = append(touched, unit.Backend.Key(ref.Key))
		}
	}
	for _, host := range slices.Concat(old.Hosts, now.Hosts) {
		touched = s.appendBackends(touched, outside(host))
	}
	return touched
}

func (s *Store) reindexUses(ing *ingress, old, now []spec.BackendReference, call bool) []unit.Key {
	var touched []unit.Key
	change := func(ref spec.BackendReference) {
		// The backend of a name without a Service may depend on its callers.
		if !s.inUse(ref) || ref.Service.Namespace == model.NoNamespace {
			touched = append(touched, unit.Backend.Key(ref.Key))
			s.markNameDirty(ref.Service)
		}
	}
	for _, ref := range now {
		if !hasBackend(old, ref) {
			change(ref)
			s.backends.add(ref.Service, reference{ref.Key, ing, call})
		}
	}
	for _, ref := range old {
		if !hasBackend(now, ref) {
			s.backends.remove(ref.Service, reference{ref.Key, ing, call})
			change(ref)
		}
	}
	return touched
}

// hasBackend takes a list as spec.References have them, sorted.
func hasBackend(list []spec.BackendReference, ref spec.BackendReference) bool {
	_, found := slices.BinarySearchFunc(list, ref.Key, func(r spec.BackendReference, key string) int { return strings.Compare(r.Key, key) })
	return found
}

// saysOf reports whether an Ingress that uses the backend has settings for it:
// then each of its Ingresses may decide them.
func (s *Store) saysOf(ref spec.BackendReference) bool {
	return slices.ContainsFunc(s.backends[ref.Service], func(b reference) bool {
		return b.key == ref.Key && !b.call && b.user.references.SaysOfBackends
	})
}

func (s *Store) inUse(ref spec.BackendReference) bool {
	return slices.ContainsFunc(s.backends[ref.Service], func(b reference) bool { return b.key == ref.Key })
}

// sameIngress compares the fields of an Ingress that are read.
func sameIngress(a, b *networkingv1.Ingress) bool {
	return a.CreationTimestamp.Equal(&b.CreationTimestamp) &&
		maps.Equal(a.Annotations, b.Annotations) &&
		equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

func (s *Store) applyClass(object *networkingv1.IngressClass, deleted bool) []unit.Key {
	put(s.classes, object.Name, object, deleted)
	var touched []unit.Key
	for _, ing := range s.byClass[object.Name] {
		touched = append(touched, s.reconsider(ing)...)
	}
	return touched
}

// reconsider applies whether an Ingress is ours now.
func (s *Store) reconsider(ing *ingress) []unit.Key {
	if (ing.ours || ing.refused) == s.isOurs(ing.object) {
		return nil
	}
	return s.reindex(ing, ing.object)
}

// applyNamespace goes through all Ingresses if a namespace is newly selected, or
// not selected any more. That is rare.
func (s *Store) applyNamespace(object *corev1.Namespace, deleted bool) []unit.Key {
	if s.settings.Namespaces == nil {
		return nil
	}
	is := !deleted && s.settings.Namespaces.Matches(labels.Set(object.Labels))
	if is == s.selected.Has(object.Name) {
		return nil
	}
	if s.selected.Delete(object.Name); is {
		s.selected.Insert(object.Name)
	}
	var touched []unit.Key
	for name, ing := range s.ingresses {
		if name.Namespace == object.Name {
			touched = append(touched, s.reconsider(ing)...)
		}
	}
	return touched
}

// isOurs reports whether an Ingress is ours: by its namespace and by its class.
func (s *Store) isOurs(ing *networkingv1.Ingress) bool {
	return (s.settings.Namespaces == nil || s.selected.Has(ing.Namespace)) && s.isOurClass(ing)
}

// isOurClass reports whether an Ingress is ours by its class. The annotation is
// ignored if the field is set.
func (s *Store) isOurClass(ing *networkingv1.Ingress) bool {
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
