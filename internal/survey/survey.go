// Package survey builds all that objects ask for, once and without NGINX, for
// commands that tell people about them.
//
// It does what the controller does at its start, up to the units, and keeps
// what the controller passes on. It looks up no names and asks no cluster: the
// objects that it is given are all there is. What is done with a Survey, it must
// not know.
package survey

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

// Settings say what is served, as the controller's flags do.
type Settings struct {
	Store    store.Settings
	Features []feature.Feature
	// AnnotationPrefix stands before the names of annotations, without the
	// slash.
	AnnotationPrefix string
	// Namespace is the only one whose objects are taken, beside the ConfigMap
	// with the options and the Secret with the default certificate; empty for
	// all.
	Namespace string
}

// A Survey is what was built. It must not be changed.
//
// Maps are by the name of the unit: the host, the server name, the key of the
// backend (model.BackendKey).
type Survey struct {
	// View shows the objects that are served, by class and namespace.
	View *store.Store
	// Globals are what holds for every request.
	Globals  model.Globals
	Hosts    map[string]model.Host
	Names    map[string]model.Name
	Patterns model.NamePatterns
	Backends map[string]model.Backend
	// Certificates are those that names show, by their hash.
	Certificates map[string]model.Certificate
	// DefaultCertificate is nil where the controller makes one at its start.
	DefaultCertificate *model.Certificate
	// Findings are those of each unit that has any. An object may have the same
	// one in several units; All has each once.
	Findings map[unit.Key][]finding.Finding

	desired *plan.Desired
}

// Take builds all units of what the changes leave. It fails if the library for
// regular expressions is not there, without which each of them would look
// wrong.
func Take(changes []source.Change, s Settings) (*Survey, error) {
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
	v := &Survey{
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

func (v *Survey) enter(key unit.Key, fs []finding.Finding) {
	delete(v.Findings, key)
	if len(fs) > 0 {
		v.Findings[key] = fs
	}
}

// takes tells whether an object is of the namespace to serve, or of none.
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
func (v *Survey) Unit(key unit.Key) (unit.Unit, bool) { return v.desired.Unit(key) }

// BoundProfiles puts what is served in place of the profiles that a host asks
// for.
func (v *Survey) BoundProfiles(h *model.Host) []finding.Finding { return v.desired.BoundProfiles(h) }

// All are the findings of all units, sorted, each once.
func (v *Survey) All() []finding.Finding {
	var all []finding.Finding
	for _, fs := range v.Findings {
		all = append(all, fs...)
	}
	return finding.Sort(all)
}

func (v *Survey) build(b *build.Builder, key unit.Key) []finding.Finding {
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
