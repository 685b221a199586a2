// Package tenancy says what goes wrong, or may, where Ingresses of several namespaces
// ask for one name: those who are refused, and those who take part.
//
// It is pure, like package build. Who is refused is decided by the View.
package tenancy

import (
	"fmt"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/setting"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// A View shows whose names are.
type View interface {
	setting.View
	// OwnHosts reports whether a name belongs to one namespace.
	OwnHosts() bool
	// Owner is whose a name is.
	Owner(name string) spec.Owner
	// Strangers are the Ingresses that ask for a name of another namespace and don't
	// get it, in no order. They are among none of the others that the View shows.
	Strangers(name string) []spec.Stranger
	// Covering is the Ingress whose certificate is shown for names below the wildcard
	// above a name, nil if there is none, and the namespaces that it is shared with.
	Covering(name string) (ing *networkingv1.Ingress, sharedWith []string)
}

// Refused are the findings about those who ask for a name of another namespace, in one
// of these ways: one on each of them, and one on the owner for each namespace.
func Refused(name string, v View, r *setting.Reader, claims ...spec.Claim) []finding.Finding {
	strangers := slices.DeleteFunc(v.Strangers(name), func(s spec.Stranger) bool { return !slices.Contains(claims, s.Claim) })
	owner := v.Owner(name)
	if len(strangers) == 0 || owner.Ingress == nil {
		return nil
	}
	slices.SortFunc(strangers, func(a, b spec.Stranger) int { return spec.CompareAge(a.Ingress, b.Ingress) })
	annotation := r.Name(feature.HostSharedWithAnnotation)
	at := owner.Wildcard
	if at == "" {
		at = name
	}
	var fs []finding.Finding
	var asking parties
	for _, s := range strangers {
		asking.add(s.Ingress)
		fs = append(fs, finding.Finding{
			Object: spec.ObjectName(s.Ingress), Field: field(s.Ingress, name, v, r), Code: finding.HostOwned,
			Message: fmt.Sprintf("%s: while the key %s is %s, Ingresses of namespace %s need an Ingress of namespace %s "+
				"that lists it in the annotation %s", Why(name, owner), feature.HostOwnershipKey, feature.NamespaceHosts,
				s.Ingress.Namespace, owner.Ingress.Namespace, annotation),
			Effect: effect(name, s.Claim),
		})
	}
	for _, p := range asking.list {
		fs = append(fs, finding.Finding{
			Object: spec.ObjectName(owner.Ingress), Field: field(owner.Ingress, at, v, r), Code: finding.HostOwned,
			Message: fmt.Sprintf("%s, of another namespace, asks for %s", p, Title(name)),
			Effect:  fmt.Sprintf("it is refused, unless namespace %s is in the annotation %s", p.namespace, annotation),
		})
	}
	return fs
}

// Why says whose a name is and why.
func Why(name string, owner spec.Owner) string {
	why := "the oldest Ingress with it"
	if owner.Wildcard != "" {
		why = "an older Ingress with a certificate for " + owner.Wildcard
	}
	return fmt.Sprintf("%s belongs to namespace %s of %s, %s", Title(name), owner.Ingress.Namespace, spec.ObjectName(owner.Ingress), why)
}

// Title is a name in findings.
func Title(name string) string {
	if name == model.DefaultHost {
		return "the default host"
	}
	return "the name " + finding.Shorten(name)
}

func effect(name string, claim spec.Claim) string {
	switch claim {
	case spec.ByCanary:
		return "this canary gets no requests for " + Title(name)
	case spec.ByAlias:
		return "requests for it do not go to this Ingress"
	case spec.ByRedirectAlias:
		return "it is not redirected"
	}
	return "nothing of this Ingress is served for " + Title(name)
}

// field is where an Ingress asks for a name.
func field(ing *networkingv1.Ingress, name string, v View, r *setting.Reader) string {
	for i, rule := range ing.Spec.Rules {
		if host, ok := spec.HostName(rule.Host); ok && host == name {
			return fmt.Sprintf("spec.rules[%d].host", i)
		}
	}
	if name == model.DefaultHost {
		return "spec.defaultBackend"
	}
	claims := r.Claims(ing, v)
	if slices.Contains(claims.Aliases, name) || claims.WWWBy == nil {
		return r.Annotation(claims.AliasesBy)
	}
	return r.Annotation(claims.WWWBy)
}

// A party is the Ingresses of one namespace, of which it names the first.
type party struct {
	namespace string
	first     *networkingv1.Ingress
	more      int
}

func (p party) String() string {
	if p.more == 0 {
		return spec.ObjectName(p.first)
	}
	return fmt.Sprintf("%s (and %d more of its namespace)", spec.ObjectName(p.first), p.more)
}

// parties are in the order of their first Ingresses.
type parties struct {
	list []party
	at   map[string]int // by namespace
}

// add reports whether the Ingress is the first one of its namespace.
func (p *parties) add(ing *networkingv1.Ingress) (first bool) {
	if i, known := p.at[ing.Namespace]; known {
		p.list[i].more++
		return false
	}
	if p.at == nil {
		p.at = map[string]int{}
	}
	p.at[ing.Namespace] = len(p.list)
	p.list = append(p.list, party{namespace: ing.Namespace, first: ing})
	return true
}

// A Taking is what an Ingress does to a name of another namespace, where names belong to
// none.
type Taking struct {
	Ingress *networkingv1.Ingress
	Field   string
	// What says it: "takes requests of host a.test (prefix /b)".
	What string
	// Effect is what follows.
	Effect string
}

// Taken are the findings about what others do to a name of an Ingress: one on each of
// them, and on the Ingress one for each namespace.
func Taken(owner *networkingv1.Ingress, ownersField string, takings []Taking) []finding.Finding {
	var fs []finding.Finding
	var taking parties
	var firsts []Taking
	for _, t := range takings {
		if taking.add(t.Ingress) {
			firsts = append(firsts, t)
		}
		fs = append(fs, finding.Finding{
			Object: spec.ObjectName(t.Ingress), Field: t.Field, Code: finding.HostShared,
			Message: fmt.Sprintf("this Ingress %s, which belongs to %s of another namespace", t.What, spec.ObjectName(owner)), Effect: t.Effect,
		})
	}
	for i, p := range taking.list {
		first := firsts[i]
		fs = append(fs, finding.Finding{
			Object: spec.ObjectName(owner), Field: ownersField, Code: finding.HostShared,
			Message: fmt.Sprintf("%s, of another namespace, %s", p, first.What), Effect: first.Effect,
		})
	}
	return fs
}
