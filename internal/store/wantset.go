package store

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// A demand knows what is wanted of a source that gives only what is referred
// to.
type wantSet[Name comparable] struct {
	// wanted has what was referred to when take was last called, doubted what
	// that may have changed for since.
	known, dirty map[Name]struct{}
}

func newWantSet[Name comparable]() wantSet[Name] {
	return wantSet[Name]{map[Name]struct{}{}, map[Name]struct{}{}}
}

func (d wantSet[Name]) markDirty(name Name) { d.dirty[name] = struct{}{} }

// take says what is referred to since the last call, and what no longer.
func (d wantSet[Name]) drain(referred func(Name) bool) (r References[Name]) {
	for name := range d.dirty {
		_, was := d.known[name]
		switch is := referred(name); {
		case is && !was:
			d.known[name] = struct{}{}
			r.Added = append(r.Added, name)
		case was && !is:
			delete(d.known, name)
			r.Removed = append(r.Removed, name)
		}
	}
	clear(d.dirty)
	return r
}

// References are what came to be referred to, and what is referred to no
// longer.
type References[Name any] struct{ Added, Removed []Name }

// TakeSecrets says which Secrets something refers to since the last call, and
// which nothing refers to any more. A source that does not give every Secret
// gives those that are referred to.
func (s *Store) DrainSecrets() References[types.NamespacedName] {
	return s.wantedSecrets.drain(s.secretInUse)
}

// secretInUse reports whether something refers to the Secret.
func (s *Store) secretInUse(name types.NamespacedName) bool {
	return len(s.bySecret[name]) > 0 || len(s.byObject[referenceTo(feature.Secret, name)]) > 0 ||
		name.Name != "" && name == s.settings.DefaultCertificate
}

// TakeConfigMaps says the same of the ConfigMaps that annotations refer to.
func (s *Store) DrainConfigMaps() References[types.NamespacedName] {
	return s.wantedConfigMaps.drain(func(name types.NamespacedName) bool {
		return len(s.byObject[referenceTo(feature.ConfigMap, name)]) > 0
	})
}

func referenceTo(kind feature.ObjectKind, name types.NamespacedName) feature.Reference {
	return feature.Reference{Kind: kind, ObjectName: feature.ObjectName(name)}
}

// doubtObject asks anew whether the object is wanted.
func (s *Store) markObjectDirty(ref feature.Reference) {
	switch name := types.NamespacedName(ref.ObjectName); ref.Kind {
	case feature.Secret:
		s.wantedSecrets.markDirty(name)
	case feature.ConfigMap:
		s.wantedConfigMaps.markDirty(name)
	}
}

// TakeNames says the same of the DNS names whose addresses are needed: those
// of Services that something refers to, and those that something calls.
func (s *Store) DrainNames() References[string] {
	return s.wantedNames.drain(func(name string) bool {
		for _, service := range s.byExternalName[name] {
			if s.serviceInUse(service) {
				return true
			}
		}
		return s.serviceInUse(outside(name))
	})
}

// serviceInUse reports whether a backend of the Service is in use.
func (s *Store) serviceInUse(name types.NamespacedName) bool {
	called := slices.ContainsFunc(s.optionCalls, func(ref build.BackendReference) bool { return ref.Service == name })
	return called || len(s.backends[name]) > 0 || name.Name != "" && name == s.settings.DefaultBackend
}

// doubtName asks anew whether the DNS name of the Service is wanted.
func (s *Store) markNameDirty(service types.NamespacedName) {
	if service.Namespace == model.NoNamespace {
		if name, ok := build.OutsideName(service.Name); ok {
			s.wantedNames.markDirty(name)
		}
		return
	}
	if object := s.services[service]; object != nil {
		if name, ok := s.externalName(object); ok {
			s.wantedNames.markDirty(name)
		}
	}
}
