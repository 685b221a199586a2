// Package snapshot builds all units of given objects once, without NGINX, for
// commands that report about them.
//
// It does what the controller does at its start, up to the units, and keeps what
// the controller passes on. It looks up no names and has no connection to a
// cluster: it knows the given objects only. It must not know what a Snapshot is
// used for.
package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/pcre"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/unit"
)

// Settings are what the controller's flags select.
type Settings struct {
	Store    store.Settings
	Features []feature.Feature
	// AnnotationPrefix is the prefix of annotations, without the slash.
	AnnotationPrefix string
	// Namespace is the only one whose objects are taken, besides the ConfigMap
	// with the options and the Secret with the default certificate. Empty means
	// all namespaces.
	Namespace string
}

// A Snapshot is the result of Build. It must not be changed.
//
// The keys of the maps are the names of the units: the host, the server name, the
// key of the backend (model.BackendKey).
type Snapshot struct {
	// View has the objects that are served, by class and namespace.
	View *store.Store
	// Globals are the settings of all requests.
	Globals  model.Globals
	Hosts    map[string]model.Host
	Names    map[string]model.Name
	Patterns model.NamePatterns
	Backends map[string]model.Backend
	// Certificates are those that names show, by hash.
	Certificates map[string]model.Certificate
	// DefaultCertificate is nil if the controller makes one at its start.
	DefaultCertificate *model.Certificate
	// Findings are those of each unit that has any. Several units may have the
	// same finding of an object; All returns it once.
	Findings map[unit.Key][]finding.Finding

	desired *plan.Desired
}

// Build builds all units of the objects that remain after the changes. It fails
// if the library for regular expressions is missing, since every expression
// would be reported as invalid.
func Build(changes []source.Change, s Settings) (*Snapshot, error) {
	if _, err := pcre.Version(); err != nil {
		return nil, err
	}
	builder := build.New(s.Features, s.AnnotationPrefix)
	objects := store.New(s.Store, builder.Refer)
	for _, change := range changes {
		if s.takes(change) {
			objects.Apply(change.Object, change.Deleted)
		}
	}
	v := &Snapshot{
		View:  objects,
		Hosts: map[string]model.Host{}, Names: map[string]model.Name{}, Backends: map[string]model.Backend{},
		Certificates: map[string]model.Certificate{},
		Findings:     map[unit.Key][]finding.Finding{}, desired: plan.NewDesired(feature.Directives(s.Features)),
	}
	for _, key := range objects.All() {
		v.enter(key, v.build(builder, key))
	}
	for _, host := range v.desired.Rebound() {
		key := unit.Host.Key(host)
		v.enter(key, v.build(builder, key))
	}
	return v, nil
}

func (v *Snapshot) enter(key unit.Key, fs []finding.Finding) {
	delete(v.Findings, key)
	if len(fs) > 0 {
		v.Findings[key] = fs
	}
}

// takes reports whether an object is in the namespace to serve, or in none.
func (s Settings) takes(change source.Change) bool {
	o := change.Object
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	switch o.(type) {
	case *corev1.ConfigMap:
		if name == s.Store.ConfigMap {
			return true
		}
	case *corev1.Secret:
		if name == s.Store.DefaultCertificate {
			return true
		}
	}
	return s.Namespace == "" || name.Namespace == "" || name.Namespace == s.Namespace
}

// Unit is the packed form of a unit, as the data plane would get it.
func (v *Snapshot) Unit(key unit.Key) (unit.Unit, bool) { return v.desired.Unit(key) }

// BoundProfiles replaces the profiles of a host by those that are served.
func (v *Snapshot) BoundProfiles(h *model.Host) []finding.Finding { return v.desired.BoundProfiles(h) }

// All returns the findings of all units, sorted, without duplicates.
func (v *Snapshot) All() []finding.Finding {
	var all []finding.Finding
	for _, fs := range v.Findings {
		all = append(all, fs...)
	}
	return finding.Sort(all)
}

func (v *Snapshot) build(b *build.Builder, key unit.Key) []finding.Finding {
	built, fs := b.Unit(key, v.View)
	fs = append(fs, v.desired.Set(built)...)
	switch m := built.Model.(type) {
	case model.Globals:
		v.Globals = m
	case model.Host:
		v.desired.BoundProfiles(&m)
		v.Hosts[m.Name] = m
	case model.Name:
		v.Names[m.Name] = m
	case model.NamePatterns:
		v.Patterns = m
	case model.Backend:
		v.Backends[m.Key] = m
	case model.Certificate:
		v.DefaultCertificate = &m
	}
	for _, c := range built.Certificates {
		v.Certificates[c.Hash] = c
	}
	return fs
}
