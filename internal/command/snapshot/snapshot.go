// Package snapshot builds all units of given objects once, without NGINX, for
// commands that report about them.
//
// It does what the controller does at its start, up to the units, and keeps what
// the controller passes on. It looks up no names and has no connection to a
// cluster: it knows the given objects only. It must not know what a Snapshot is
// used for.
package snapshot

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/store"
	"github.com/headgate/headgate/internal/syntax/pcre"
	"github.com/headgate/headgate/internal/unit"
)

// Settings are what the controller's flags select.
type Settings struct {
	Store    store.Settings
	Features []feature.Feature
	// AnnotationPrefix is the prefix of annotations, without the slash.
	AnnotationPrefix string
	// Namespace is the only one whose objects are taken, besides the ConfigMaps
	// with the options and with TCP and UDP services, and the Secret with the default certificate. Empty means
	// all namespaces.
	Namespace string
}

// A Snapshot is the result of Build. It must not be changed.
type Snapshot struct {
	// View has the objects that are served, by class and namespace.
	View *store.Store
	// Models are the units that exist, as in unit.Built.
	Models map[unit.Key]any
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
		View: objects, Models: map[unit.Key]any{}, Findings: map[unit.Key][]finding.Finding{},
		desired: plan.NewDesired(feature.Directives(s.Features)),
	}
	for _, key := range objects.All() {
		v.build(builder, key)
	}
	for _, host := range v.desired.Rebound() {
		v.build(builder, unit.Host.Key(host))
	}
	return v, nil
}

func (v *Snapshot) build(b *build.Builder, key unit.Key) {
	built, fs := b.Unit(key, v.View)
	if built.Model != nil {
		v.Models[key] = built.Model
	}
	delete(v.Findings, key)
	if fs = append(fs, v.desired.Set(built)...); len(fs) > 0 {
		v.Findings[key] = fs
	}
}

// takes reports whether an object is in the namespace to serve, or in none.
func (s Settings) takes(change source.Change) bool {
	o := change.Object
	name := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
	_, isConfigMap := o.(*corev1.ConfigMap)
	_, isSecret := o.(*corev1.Secret)
	return s.Namespace == "" || name.Namespace == "" || name.Namespace == s.Namespace ||
		isConfigMap && (name == s.Store.ConfigMap || name == s.Store.TCPServices || name == s.Store.UDPServices) || isSecret && name == s.Store.DefaultCertificate
}

// BoundProfiles replaces the profiles of a host by those that are served.
func (v *Snapshot) BoundProfiles(h *model.Host) []finding.Finding { return v.desired.BoundProfiles(h) }

// All returns the findings of all units, sorted, without duplicates.
func (v *Snapshot) All() []finding.Finding {
	return finding.Sort(slices.Concat(slices.Collect(maps.Values(v.Findings))...))
}
