package routing

import (
	"cmp"
	"fmt"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/build/tenancy"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// addStrangers reports the Ingresses that are refused at the host because it belongs to
// another namespace.
func (l *hostBuilder) addStrangers() {
	for _, s := range l.view.Strangers(l.host) {
		if s.Claim == spec.ByRule || s.Claim == spec.ByCanary {
			p := l.contributionOf(s.Ingress)
			problems := p.Problems()
			if s.Claim == spec.ByCanary {
				name, _, report := l.builder.settings.Canary(p.Parsed, noCanary)
				problems = append(p.ProblemsOf(name), report.Problems...)
			}
			l.reportWhole(p, problems)
		}
	}
	l.findings = append(l.findings, tenancy.Refused(l.host, l.view, l.builder.settings, spec.ByRule, spec.ByCanary)...)
}

// reportShared reports what Ingresses of other namespaces do to the host of the oldest
// one, as long as hosts belong to no namespace.
func (l *hostBuilder) reportShared() {
	if l.view.OwnHosts() || len(l.contributions) == 0 {
		return
	}
	owner := l.contributions[0]
	at := "spec.defaultBackend"
	if len(owner.rules) > 0 {
		at = fmt.Sprintf("spec.rules[%d].host", owner.rules[0])
	}
	l.findings = append(l.findings, tenancy.Taken(owner.Ingress, at, l.takings(owner.Namespace))...)
	l.findings = append(l.findings, tenancy.Taken(owner.Ingress, at, l.changers(owner.Namespace))...)
	for _, c := range l.foreignCanaries {
		l.findings = append(l.findings, tenancy.Taken(c.of.Ingress, c.field, []tenancy.Taking{c.taking})...)
	}
}

const isShared = ", since the key " + feature.HostOwnershipKey + " is " + string(feature.SharedHosts)

// changers are the Ingresses of other namespaces than the owner's that make the host's
// paths regular expressions, the oldest first; none if one of the owner's does too.
func (l *hostBuilder) changers(owner string) (list []tenancy.Taking) {
	if !l.patterns {
		return nil
	}
	for _, p := range l.contributions {
		path, by := l.patternOf(p)
		switch {
		case by == nil:
		case l.shares(owner, p.Namespace):
			return nil
		default:
			list = append(list, tenancy.Taking{
				Ingress: p.Ingress, Field: l.builder.settings.Annotation(by),
				What:   fmt.Sprintf("makes all paths of %s regular expressions (by path %s)", tenancy.Title(l.host), finding.Shorten(path)),
				Effect: "exact paths match longer ones, upper and lower case are equal, and longer paths come first" + isShared,
			})
		}
	}
	return list
}

// A partition is who has a host together, worked out once for all of its Ingresses.
type partition struct {
	byOrigin map[model.Origin]*contribution
	// sharedWith are the namespaces that each namespace shares the host with.
	sharedWith map[string]map[string]bool
}

func (l *hostBuilder) parts() *partition {
	if l.partition != nil {
		return l.partition
	}
	l.partition = &partition{map[model.Origin]*contribution{}, map[string]map[string]bool{}}
	for _, p := range l.contributions {
		l.partition.byOrigin[spec.Origin(p.Ingress)] = p
		for _, namespace := range l.view.References(p.Ingress).SharedWith {
			if l.partition.sharedWith[p.Namespace] == nil {
				l.partition.sharedWith[p.Namespace] = map[string]bool{}
			}
			l.partition.sharedWith[p.Namespace][namespace] = true
		}
	}
	return l.partition
}

// shares reports whether the host is one namespace's as much as the other's.
func (l *hostBuilder) shares(owner, other string) bool {
	return owner == other || l.parts().sharedWith[owner][other]
}

// takings are what Ingresses of other namespaces than the owner's take by their routes,
// the oldest first.
func (l *hostBuilder) takings(owner string) []tenancy.Taking {
	type part struct {
		field, path string
		routes      int
	}
	parts := map[model.Origin]*part{}
	for i := range l.routes {
		r := &l.routes[i]
		if r.field == "" || l.shares(owner, r.Origin.Namespace) {
			continue
		}
		p := parts[r.Origin]
		if p == nil {
			p = &part{}
			parts[r.Origin] = p
		}
		if p.routes++; p.field == "" || r.field < p.field {
			p.field, p.path = r.field, finding.Shorten(r.where.String())
		}
	}
	var list []tenancy.Taking
	for _, c := range l.contributions {
		p := parts[spec.Origin(c.Ingress)]
		if p == nil {
			continue
		}
		if p.routes > 1 {
			p.path += fmt.Sprintf(" and %d more", p.routes-1)
		}
		list = append(list, tenancy.Taking{
			Ingress: c.Ingress, Field: p.field,
			What:   fmt.Sprintf("takes requests of %s (%s)", tenancy.Title(l.host), p.path),
			Effect: "they go to its backend, without the settings of the host's other Ingresses" + isShared,
		})
	}
	return list
}

// A foreignCanary is one on a route of another namespace.
type foreignCanary struct {
	of     *contribution
	field  string
	taking tenancy.Taking
}

// noteCanary keeps a canary that takes requests of a route of another namespace.
func (l *hostBuilder) noteCanary(p *contribution, o offer) {
	route := &l.routes[o.route]
	if route.Origin.Namespace == "" || l.shares(route.Origin.Namespace, p.Namespace) {
		return
	}
	l.foreignCanaries = append(l.foreignCanaries, foreignCanary{l.parts().byOrigin[route.Origin], cmp.Or(route.field, "spec.rules"), tenancy.Taking{
		Ingress: p.Ingress, Field: o.field,
		What:   fmt.Sprintf("is a canary that takes requests of %s (%s)", tenancy.Title(l.host), finding.Shorten(o.where.String())),
		Effect: "they go to its backend" + isShared,
	}})
}
