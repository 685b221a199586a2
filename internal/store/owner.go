package store

import (
	"reflect"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// Whose a name is follows from what Ingresses claim, and not from what they get: so it
// depends on nothing but the Ingresses with the name, and with the wildcard above it.

// A covering is the Ingress by which the names below a wildcard are a namespace's: the
// oldest of the wildcard's owner that has a certificate. It is zero if there is none.
type covering struct {
	origin model.Origin
	// shared are the namespaces that the owner shares the wildcard with.
	shared []string
}

func (c covering) exists() bool { return c.origin != model.Origin{} }

// An ownership is whose a name is. It is zero if no Ingress claims the name.
type ownership struct {
	origin model.Origin
	// wildcard is set if the name is only below a wildcard of the owner.
	wildcard bool
	shared   []string
}

// claims are the Ingresses that claim a name for routes: canaries claim none.
func (s *Store) claims(name string) func(yield func(*ingress) bool) {
	return func(yield func(*ingress) bool) {
		for _, list := range [][]*ingress{s.byHost[name], s.byAlias[name], s.byRedirectAlias[name]} {
			for _, ing := range list {
				if !ing.references.IsCanary && !yield(ing) {
					return
				}
			}
		}
	}
}

func (s *Store) isClaimed(name string) bool {
	return len(s.byHost[name])+len(s.byAlias[name])+len(s.byRedirectAlias[name]) > 0
}

// older is the older one of two Ingresses, the first of which may be nil.
func older(a, b *ingress) *ingress {
	if a != nil && a.origin.CompareAge(b.origin) <= 0 {
		return a
	}
	return b
}

func (s *Store) coveringOf(wildcard string) (c covering) {
	var owner, secured *ingress
	for ing := range s.claims(wildcard) {
		owner = older(owner, ing)
	}
	for ing := range s.claims(wildcard) {
		// Where names belong to none, every certificate of a rule's wildcard covers.
		counts := ing.origin.Namespace == owner.origin.Namespace
		if !s.ownHosts {
			counts = slices.Contains(ing.references.Hosts, wildcard)
		}
		if counts && len(ing.references.Secrets) > 0 {
			secured = older(secured, ing)
		}
	}
	if secured == nil {
		return covering{}
	}
	return covering{secured.origin, s.sharedBy(wildcard, secured.origin.Namespace)}
}

// coveringAbove is the covering of the wildcard above a name.
func (s *Store) coveringAbove(name string) (wildcard string, c covering) {
	wildcard, ok := model.WildcardAbove(name)
	if !ok || !s.isClaimed(wildcard) {
		return "", covering{}
	}
	return wildcard, s.coveringOf(wildcard)
}

// sharedBy are the namespaces that a namespace shares a name with, sorted; nil if it has
// no claim to the name.
func (s *Store) sharedBy(name, namespace string) (shared []string) {
	for ing := range s.claims(name) {
		if ing.origin.Namespace != namespace {
			continue
		}
		if shared == nil {
			shared = []string{}
		}
		shared = append(shared, ing.references.SharedWith...)
	}
	slices.Sort(shared)
	return slices.Compact(shared)
}

// ownership is whose a name is with a covering above it. The older of the two claims
// counts: a new wildcard takes no name.
func (s *Store) ownership(name string, above covering) (o ownership) {
	var owner *ingress
	for ing := range s.claims(name) {
		owner = older(owner, ing)
	}
	switch {
	case above.exists() && (owner == nil || above.origin.CompareAge(owner.origin) < 0):
		o = ownership{origin: above.origin, wildcard: true}
	case owner == nil:
		return ownership{}
	default:
		o = ownership{origin: owner.origin}
	}
	// Who shares a wildcard does not share what it has below it.
	if o.shared = s.sharedBy(name, o.origin.Namespace); o.shared == nil {
		o.shared = above.shared
	}
	return o
}

func (s *Store) ownershipOf(name string) ownership {
	_, above := s.coveringAbove(name)
	return s.ownership(name, above)
}

// admits reports whether an Ingress may have a name.
func (o ownership) admits(ing *ingress) bool {
	return o.origin == (model.Origin{}) || ing.origin.Namespace == o.origin.Namespace || slices.Contains(o.shared, ing.origin.Namespace)
}

// admitted are those of the Ingresses with a name that may have it.
func (s *Store) admitted(name string, claims []*ingress) []*ingress {
	if !s.ownHosts || len(claims) == 0 {
		return claims
	}
	o := s.ownershipOf(name)
	if !slices.ContainsFunc(claims, func(ing *ingress) bool { return !o.admits(ing) }) {
		return claims
	}
	return slices.DeleteFunc(slices.Clone(claims), func(ing *ingress) bool { return !o.admits(ing) })
}

// OwnHosts reports whether a name belongs to one namespace.
func (s *Store) OwnHosts() bool { return s.ownHosts }

// Owner is whose a name is.
func (s *Store) Owner(name string) spec.Owner {
	wildcard, above := s.coveringAbove(name)
	o := s.ownership(name, above)
	if !o.wildcard {
		wildcard = ""
	}
	return spec.Owner{Ingress: s.named(o.origin), Wildcard: wildcard}
}

// Covering is the Ingress whose certificate is shown for names below the wildcard above
// a name, unless they have one of their own; nil if there is none. Its namespace may
// share the wildcard with others.
func (s *Store) Covering(name string) (ing *networkingv1.Ingress, sharedWith []string) {
	_, above := s.coveringAbove(name)
	return s.named(above.origin), above.shared
}

func (s *Store) named(origin model.Origin) *networkingv1.Ingress {
	if ing := s.ingresses[types.NamespacedName{Namespace: origin.Namespace, Name: origin.Ingress}]; ing != nil {
		return ing.object
	}
	return nil
}

// Strangers are the Ingresses that ask for a name of another namespace and don't get it,
// in no order.
func (s *Store) Strangers(name string) (list []spec.Stranger) {
	if !s.ownHosts {
		return nil
	}
	o := s.ownershipOf(name)
	add := func(claims []*ingress, claim spec.Claim) {
		for _, ing := range claims {
			switch {
			case o.admits(ing):
			case claim == spec.ByRule && ing.references.IsCanary:
				list = append(list, spec.Stranger{Ingress: ing.object, Claim: spec.ByCanary})
			default:
				list = append(list, spec.Stranger{Ingress: ing.object, Claim: claim})
			}
		}
	}
	add(s.byHost[name], spec.ByRule)
	add(s.byAlias[name], spec.ByAlias)
	add(s.byRedirectAlias[name], spec.ByRedirectAlias)
	return list
}

// namesIn are all names that Ingresses with these references claim, without duplicates.
func namesIn(list ...spec.References) []string {
	var names []string
	for _, refs := range list {
		names = slices.Concat(names, refs.Hosts, refs.Aliases, refs.RedirectAliases)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// coverings are those of the wildcards among names.
func (s *Store) coverings(names []string) map[string]covering {
	var list map[string]covering
	for _, name := range names {
		if strings.HasPrefix(name, "*.") {
			if list == nil {
				list = map[string]covering{}
			}
			list[name] = s.coveringOf(name)
		}
	}
	return list
}

// indexBelow keeps the names below each wildcard, of which claimed are those that were
// claimed before.
func (s *Store) indexBelow(names []string, claimed map[string]bool) {
	for _, name := range names {
		wildcard, ok := model.WildcardAbove(name)
		switch is := s.isClaimed(name); {
		case !ok || is == claimed[name]:
		case is:
			s.below.add(wildcard, name)
		default:
			s.below.remove(wildcard, name)
		}
	}
}

// appendOwned appends the units that depend on whose names are, where an Ingress begins
// or ends to claim names. Before are the coverings until then.
func (s *Store) appendOwned(keys []unit.Key, names []string, before map[string]covering) []unit.Key {
	var hosts []string
	if s.ownHosts {
		hosts = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return len(s.byHost[name]) == 0 })
	}
	for wildcard, was := range before {
		is := s.coveringOf(wildcard)
		if reflect.DeepEqual(was, is) {
			continue
		}
		for _, name := range s.below[wildcard] {
			switch {
			case !s.ownHosts:
				if s.foreign(name, was) || s.foreign(name, is) {
					keys = append(keys, unit.Name.Key(name))
				}
			case !reflect.DeepEqual(s.ownership(name, was), s.ownership(name, is)):
				hosts = append(hosts, name)
			}
		}
	}
	for _, host := range hosts {
		if len(s.byHost[host]) > 0 {
			keys = append(keys, unit.Host.Key(host))
		}
		keys = s.appendBackends(keys, outside(host))
	}
	return s.namesOf(keys, spec.References{Hosts: hosts})
}

// foreign reports whether an Ingress of another namespace than a covering's claims a name.
func (s *Store) foreign(name string, c covering) bool {
	for ing := range s.claims(name) {
		if c.exists() && ing.origin.Namespace != c.origin.Namespace {
			return true
		}
	}
	return false
}
