package explain

import (
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/servername"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/router"
)

// explainName says whose the request's name is, and who claims it too.
func (x *explainer) explainName(found router.Name) {
	name := x.out.Request.Host
	n := &Name{Name: found.Name.Name, Host: found.Host}
	x.out.Name = n
	switch found.By {
	case router.ByName, router.ByWildcard:
		if found.Redirect {
			n.By, n.Why = ByTwin, "it is nobody's but the twin of host "+found.Host
			twins := spec.OldestFirst(x.Store.RedirectAliases(name))
			n.Ingresses = x.ingresses(twins)
			for _, ing := range twins {
				x.ingress(ing)
			}
			break
		}
		_, trace, _, _ := x.Builder.TraceName(found.Name.Name, x.Store)
		n.By, n.Why = ByRule, "a rule names it"
		n.Ingresses = x.ingresses(trace.Rules)
		switch {
		case found.By == router.ByWildcard:
			n.By, n.Why = ByWildcard, "its star stands for one label; nothing names "+name+" itself"
		case trace.Alias != nil:
			n.By, n.Why = ByAlias, fmt.Sprintf("%s claims it as an alias of its host %s", x.ingress(trace.Alias), found.Host)
			n.Ingresses = x.ingresses([]*networkingv1.Ingress{trace.Alias})
		}
		for _, ing := range trace.Lost {
			x.lostClaim(found.Name.Name, ByAlias, ing, "the name is taken by "+oldest(n.Ingresses))
		}
	case router.ByHead, router.ByTail, router.ByRegex:
		x.explainPattern(found, n)
	default:
		n.By, n.Why = ByDefault, "nobody has the name"
		if name == model.DefaultHost {
			n.Why = "the request names no host"
		}
		n.Ingresses = x.ingresses(spec.OldestFirst(x.Store.Ingresses(model.DefaultHost)))
	}
	x.lostWildcards(name, found)
	x.lostAliases(name, found)
	x.explainUnserved(name)
}

func oldest(names []string) string {
	if len(names) == 0 {
		return "another Ingress"
	}
	return names[0]
}

// explainPattern is about an alias that stands for more than one name.
func (x *explainer) explainPattern(found router.Name, n *Name) {
	for _, a := range x.patternAliases(x.out.Request.Host) {
		if a.Unit.Name != found.Name.Name {
			continue
		}
		n.Name, n.By = a.Text, ByPattern
		n.Ingresses = x.ingresses([]*networkingv1.Ingress{a.Alias})
		n.Why = fmt.Sprintf("%s claims it as an alias of its host %s", x.ingress(a.Alias), found.Host)
		for _, ing := range a.Lost {
			x.lostClaim(a.Text, ByPattern, ing, "the alias is taken by "+oldest(n.Ingresses))
		}
	}
}

func (x *explainer) lostClaim(name, by string, ing *networkingv1.Ingress, why string) {
	x.out.Name.Lost = append(x.out.Name.Lost, Claim{Name: name, By: by, Ingresses: []string{x.ingress(ing)}, Why: why})
}

// lostWildcards are the rules' wildcards above the name that don't answer.
func (x *explainer) lostWildcards(name string, found router.Name) {
	if name == model.DefaultHost {
		return
	}
	rest, labels := name, 0
	for {
		_, after, ok := strings.Cut(rest, ".")
		if !ok {
			return
		}
		rest = after
		labels++
		wildcard := "*." + rest
		owners := x.Store.Ingresses(wildcard)
		if len(owners) == 0 || wildcard == found.Name.Name {
			continue
		}
		why := "a name of its own comes before wildcards"
		if labels > 1 {
			why = fmt.Sprintf("the star of a rule stands for one label, and %s has %d in its place", name, labels)
		}
		owners = spec.OldestFirst(owners)
		x.out.Name.Lost = append(x.out.Name.Lost, Claim{Name: wildcard, By: ByWildcard, Ingresses: x.ingresses(owners), Why: why})
	}
}

// patternAliases are those that stand for the request's name.
func (x *explainer) patternAliases(name string) []servername.AliasTrace {
	if x.aliases == nil {
		x.aliases = map[string][]servername.AliasTrace{}
	}
	list, known := x.aliases[name]
	if !known {
		list = x.Builder.TraceAliases(name, x.Store)
		x.aliases[name] = list
	}
	return list
}

// lostAliases are the aliases that stand for the name, and more, and don't
// answer.
func (x *explainer) lostAliases(name string, found router.Name) {
	if name == model.DefaultHost {
		return
	}
	for _, a := range x.patternAliases(name) {
		if a.Unit.Name == found.Name.Name {
			continue
		}
		why := "rules' hosts and aliases of one name come first"
		switch found.By {
		case router.ByHead:
			why = "aliases with a star at their head come first, the longest before all"
		case router.ByTail:
			why = "aliases with a star at their end come before expressions, the longest before all"
		case router.ByRegex:
			why = "expressions are tried in the order of their hosts, and then of their text"
		case router.ByDefault:
			why = "aliases with stars and expressions don't stand for addresses"
		}
		x.lostClaim(a.Text, ByPattern, a.Alias, why)
	}
}

// explainUnserved finds Ingresses that would have something to say, were they
// served.
func (x *explainer) explainUnserved(name string) {
	hosts := []string{name}
	if name == model.DefaultHost {
		hosts = []string{""}
	}
	if _, rest, ok := strings.Cut(name, "."); ok {
		hosts = append(hosts, "*."+rest)
	}
	for _, u := range x.Store.Unserved(hosts) {
		x.out.Unserved = append(x.out.Unserved, Unserved{x.ingress(u.Ingress), u.Why})
	}
}
