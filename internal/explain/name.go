package explain

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/build/tenancy"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/router"
)

// explainName finds the host of the request's name, and other claims to it.
func (x *explainer) explainName(found router.Name) {
	name := x.out.Request.Host
	n := &report.Name{Name: found.Name.Name, Host: found.Host}
	x.out.Name = n
	switch found.By {
	case router.ByName, router.ByWildcard:
		if found.Redirect {
			n.By, n.Why = report.ByWWWRedirect, "no Ingress has the name; it is the www redirect alias of host "+found.Host
			aliases := spec.OldestFirst(x.Store.RedirectAliases(name))
			n.Ingresses = ingressNames(aliases)
			for _, ing := range aliases {
				x.ingress(ing)
			}
			break
		}
		_, trace, _, _ := x.Builder.TraceName(found.Name.Name, x.Store)
		n.By, n.Why = report.ByRule, "a rule has this host"
		n.Ingresses = ingressNames(trace.Rules)
		switch {
		case found.By == router.ByWildcard:
			n.By, n.Why = report.ByWildcard, "its * matches one label, and no rule or alias has "+name+" itself"
		case trace.Alias != nil:
			n.By, n.Why = report.ByAlias, fmt.Sprintf("%s claims it as an alias of its host %s", x.ingress(trace.Alias), found.Host)
			n.Ingresses = ingressNames([]*networkingv1.Ingress{trace.Alias})
		}
		for _, ing := range trace.Lost {
			x.lostClaim(found.Name.Name, report.ByAlias, ing, "the name belongs to "+oldest(n.Ingresses))
		}
	case router.ByLeadingWildcard, router.ByTrailingWildcard, router.ByRegex:
		x.explainPattern(found, n)
	default:
		n.By, n.Why = report.ByDefault, "no host has the name"
		if name == model.DefaultHost {
			n.Why = "the request has no host"
		}
		n.Ingresses = ingressNames(spec.OldestFirst(x.Store.Ingresses(model.DefaultHost)))
	}
	x.explainOwner(name, found)
	x.lostWildcards(name, found)
	x.lostAliases(name, found)
	x.explainUnserved(name)
}

// explainOwner finds whose the name is, and who is refused for that.
func (x *explainer) explainOwner(name string, found router.Name) {
	if !x.Store.OwnHosts() {
		return
	}
	names := []string{name, found.Name.Name, found.Host}
	for i, name := range names {
		owner := x.Store.Owner(name)
		if owner.Ingress == nil || slices.Contains(names[:i], name) {
			continue
		}
		if x.out.Name.Owner == nil {
			x.out.Name.Owner = &report.Owner{Namespace: owner.Ingress.Namespace, Ingress: x.ingress(owner.Ingress), Why: tenancy.Why(name, owner)}
		}
		strangers := x.Store.Strangers(name)
		slices.SortFunc(strangers, func(a, b spec.Stranger) int { return spec.CompareAge(a.Ingress, b.Ingress) })
		for _, s := range strangers {
			x.out.Name.Refused = append(x.out.Name.Refused, report.Claim{
				Name: name, By: claimedBy(s.Claim), Ingresses: []string{x.ingress(s.Ingress)}, Why: tenancy.Why(name, owner),
			})
		}
	}
}

func claimedBy(claim spec.Claim) string {
	return [...]string{spec.ByRule: report.ByRule, spec.ByCanary: report.ByCanary, spec.ByAlias: report.ByAlias, spec.ByRedirectAlias: report.ByWWWRedirect}[claim]
}

func oldest(names []string) string {
	if len(names) == 0 {
		return "another Ingress"
	}
	return names[0]
}

// explainPattern describes an alias for more than one name.
func (x *explainer) explainPattern(found router.Name, n *report.Name) {
	for _, a := range x.Builder.TraceAliases(x.out.Request.Host, x.Store) {
		if a.Unit.Name != found.Name.Name {
			continue
		}
		n.Name, n.By = a.Text, report.ByPattern
		n.Ingresses = ingressNames([]*networkingv1.Ingress{a.Alias})
		n.Why = fmt.Sprintf("%s claims it as an alias of its host %s", x.ingress(a.Alias), found.Host)
		for _, ing := range a.Lost {
			x.lostClaim(a.Text, report.ByPattern, ing, "the alias belongs to "+oldest(n.Ingresses))
		}
	}
}

func (x *explainer) lostClaim(name, by string, ing *networkingv1.Ingress, why string) {
	x.out.Name.Lost = append(x.out.Name.Lost, report.Claim{Name: name, By: by, Ingresses: []string{x.ingress(ing)}, Why: why})
}

// lostWildcards adds the wildcards of rules that match the name and did not win.
func (x *explainer) lostWildcards(name string, found router.Name) {
	if name == model.DefaultHost {
		return
	}
	labels := strings.Split(name, ".")
	for n := 1; n < len(labels); n++ {
		wildcard := "*." + strings.Join(labels[n:], ".")
		owners := x.Store.Ingresses(wildcard)
		if len(owners) == 0 || wildcard == found.Name.Name {
			continue
		}
		why := "exact names take precedence over wildcards"
		if n > 1 {
			why = fmt.Sprintf("the * of a rule matches one label, and %s has %d instead of it", name, n)
		}
		owners = spec.OldestFirst(owners)
		x.out.Name.Lost = append(x.out.Name.Lost, report.Claim{Name: wildcard, By: report.ByWildcard, Ingresses: ingressNames(owners), Why: why})
	}
}

// lostAliases adds the aliases for more than one name that match the name and did
// not win.
func (x *explainer) lostAliases(name string, found router.Name) {
	if name == model.DefaultHost {
		return
	}
	for _, a := range x.Builder.TraceAliases(name, x.Store) {
		if a.Unit.Name == found.Name.Name {
			continue
		}
		why := "hosts of rules and aliases of one name take precedence"
		switch found.By {
		case router.ByLeadingWildcard:
			why = "aliases with a leading * take precedence, the longest one first"
		case router.ByTrailingWildcard:
			why = "aliases with a trailing * take precedence over expressions, the longest one first"
		case router.ByRegex:
			why = "expressions are tried in the order of their hosts, then of their text"
			if x.Store.OwnHosts() {
				why = "expressions are tried in the order of the age of their Ingresses"
			}
		case router.ByDefault:
			why = "aliases with * and expressions don't match addresses"
		}
		x.lostClaim(a.Text, report.ByPattern, a.Alias, why)
	}
}

// explainUnserved finds Ingresses for the name that are not served.
func (x *explainer) explainUnserved(name string) {
	hosts := []string{name}
	if name == model.DefaultHost {
		hosts = []string{""}
	}
	if _, rest, ok := strings.Cut(name, "."); ok {
		hosts = append(hosts, "*."+rest)
	}
	for _, u := range x.Store.Unserved(hosts) {
		x.out.Unserved = append(x.out.Unserved, report.Unserved{Ingress: x.ingress(u.Ingress), Why: u.Why})
	}
}
