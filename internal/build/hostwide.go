package build

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// addHostPolicies gives all routes what an Ingress says of its whole host: the
// oldest that says anything decides, the others are told. As in ingress-nginx an
// Ingress counts only if it has a route; of access control (see addGroup) each
// does.
func (l *layout) addHostPolicies(parts []*part) {
	var added bool
	for _, f := range l.builder.features {
		if f.Group != nil {
			added = l.addGroup(f, parts) || added
			continue
		}
		if f.Host == nil {
			continue
		}
		var owner *part
		var decided any
		for _, p := range parts {
			value := f.Host(p.reader)
			switch {
			case value == nil || p.reader.Forbidden() || !p.routed:
			case owner == nil:
				owner, decided = p, value
			case !reflect.DeepEqual(value, decided):
				l.tellOverruled(f, p, owner)
			}
		}
		if owner == nil {
			continue
		}
		if l.trace != nil {
			readings := owner.reader.Recording(func() { f.Host(owner.reader) })
			l.trace.Host = append(l.trace.Host, HostSettings{owner.Ingress, l.builder.settingsOf(readings)})
		}
		l.addToAll(f, decided)
		added = true
	}
	if !added {
		return
	}
	for i := range l.routes {
		l.builder.sortPolicies(&l.routes[i].Route)
	}
}

// addToAll gives all routes a policy.
func (l *layout) addToAll(f feature.Feature, value any) {
	for i := range l.routes {
		route := &l.routes[i].Route
		// Before what the same feature does on the route alone.
		route.Policies = slices.Insert(slices.Clip(route.Policies), 0, model.Policy{Feature: f.Name, Value: value})
	}
}

// tellOverruled tells an Ingress which of its annotations about the whole host
// count for nothing.
func (l *layout) tellOverruled(f feature.Feature, p, owner *part) {
	for _, s := range f.Settings {
		name := l.builder.prefix + "/" + s.Declaration().Annotation
		if _, set := p.Annotations[name]; !set || s.Equal(p.reader, owner.reader) {
			continue
		}
		l.findings = append(l.findings, finding.Finding{
			Object: objectName(p.Ingress), Field: name, Code: finding.Conflict,
			Message: fmt.Sprintf("%s, which is older, decides for all of host %s", objectName(owner.Ingress), l.host),
			Effect:  "this annotation does nothing for that host",
		})
	}
}

// sortPolicies puts policies into the order of the feature list.
func (b *Builder) sortPolicies(route *model.Route) {
	slices.SortStableFunc(route.Policies, func(x, y model.Policy) int {
		return cmp.Compare(b.order[x.Feature], b.order[y.Feature])
	})
}
