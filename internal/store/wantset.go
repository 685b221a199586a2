package store

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/headgate/headgate/internal/build/endpoint"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// A wantSet has the references to objects of a source that delivers only objects
// with a reference.
type wantSet[Name comparable] struct {
	// known has the references of the last call of drain, dirty the names whose
	// references may have changed since.
	known, dirty sets.Set[Name]
}

func (d *wantSet[Name]) markDirty(name Name) {
	if d.dirty == nil {
		d.known, d.dirty = sets.Set[Name]{}, sets.Set[Name]{}
	}
	d.dirty.Insert(name)
}

// drain returns the references that were added and removed since the last call.
func (d wantSet[Name]) drain(referred func(Name) bool) (r References[Name]) {
	for name := range d.dirty {
		was := d.known.Has(name)
		switch is := referred(name); {
		case is && !was:
			d.known.Insert(name)
			r.Added = append(r.Added, name)
		case was && !is:
			d.known.Delete(name)
			r.Removed = append(r.Removed, name)
		}
	}
	clear(d.dirty)
	return r
}

// References are names with a new reference, and names without a reference any
// more.
type References[Name any] struct{ Added, Removed []Name }

// DrainSecrets returns the Secrets whose references were added and removed since
// the last call. A source that does not deliver all Secrets delivers those with
// a reference.
func (s *Store) DrainSecrets() References[types.NamespacedName] {
	return s.wantedSecrets.drain(s.secretInUse)
}

// secretInUse reports whether there is a reference to the Secret.
func (s *Store) secretInUse(name types.NamespacedName) bool {
	ref := referenceTo(feature.Secret, name)
	return len(s.bySecret[name]) > 0 || len(s.byObject[ref]) > 0 || slices.Contains(s.optionObjects, ref) ||
		name.Name != "" && name == s.settings.DefaultCertificate
}

// DrainConfigMaps does the same for the ConfigMaps that annotations and options refer to.
func (s *Store) DrainConfigMaps() References[types.NamespacedName] {
	return s.wantedConfigMaps.drain(func(name types.NamespacedName) bool {
		ref := referenceTo(feature.ConfigMap, name)
		return len(s.byObject[ref]) > 0 || slices.Contains(s.optionObjects, ref)
	})
}

func referenceTo(kind feature.ObjectKind, name types.NamespacedName) feature.Reference {
	return feature.Reference{Kind: kind, ObjectName: feature.ObjectName(name)}
}

// markObjectDirty marks a Secret or ConfigMap.
func (s *Store) markObjectDirty(ref feature.Reference) {
	switch name := types.NamespacedName(ref.ObjectName); ref.Kind {
	case feature.Secret:
		s.wantedSecrets.markDirty(name)
	case feature.ConfigMap:
		s.wantedConfigMaps.markDirty(name)
	}
}

// DrainNames does the same for the DNS names whose addresses are needed: those of
// Services in use, and those that Ingresses or options call.
func (s *Store) DrainNames() References[string] {
	return s.wantedNames.drain(func(name string) bool {
		return s.serviceInUse(outside(name)) || slices.ContainsFunc(s.byExternalName[name], s.serviceInUse)
	})
}

// serviceInUse reports whether a backend or a stream of the Service is in use.
func (s *Store) serviceInUse(name types.NamespacedName) bool {
	return len(s.backends[name]) > 0 || len(s.streams[name]) > 0 || name.Name != "" && name == s.settings.DefaultBackend
}

// markNameDirty marks the DNS name of the Service.
func (s *Store) markNameDirty(service types.NamespacedName) {
	if service.Namespace == model.NoNamespace {
		if name := service.Name; endpoint.CheckName(name) == "" {
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
