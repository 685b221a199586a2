package build

import (
	"cmp"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// A part is what one Ingress gives a host.
type part struct {
	*networkingv1.Ingress
	// Parsed is what its annotations say, and problems what features found besides
	// on its routes.
	*feature.Parsed
	problems []feature.Problem
	// routed is set when the Ingress has a route on the host.
	routed bool
	// rules are the numbers of the Ingress's rules for the host.
	rules []int
	// first is set on one of the Ingress's hosts: with the others nothing is told
	// of what is wrong with the Ingress as a whole.
	first bool
	// invalid are the rules whose host is no DNS name.
	invalid []int
}

// partsOf are the Ingresses of a host with what each gives it, the oldest first.
func (l *layout) partsOf(ingresses []*networkingv1.Ingress) []*part {
	parts := make([]*part, len(ingresses))
	for i, ing := range ingresses {
		rules := l.builder.rules.of(ing)
		p := &part{Ingress: ing, Parsed: l.builder.read(ing, l.view), rules: rules.byHost[l.host], first: rules.first == l.host}
		if p.first {
			p.invalid = rules.invalid
		}
		parts[i] = p
	}
	return parts
}

// tellWhole reports what is wrong with an Ingress whatever its hosts are, besides
// problems.
func (l *layout) tellWhole(p *part, problems []feature.Problem) {
	if !p.first {
		return
	}
	l.findings = append(l.findings, problemFindings(objectName(p.Ingress), problems)...)
	l.findings = append(l.findings, l.builder.unknownAnnotations(p.Ingress)...)
	for _, i := range p.invalid {
		l.refuse(p, fmt.Sprintf("spec.rules[%d].host", i), "this rule is not served",
			&refusal{finding.InvalidValue, badHost(p.Spec.Rules[i].Host)})
	}
}

// rulesByHost are an Ingress's rules by the host that they are for.
type rulesByHost struct {
	byHost  map[string][]int
	invalid []int
	// first is the host that comes first in the alphabet.
	first string
}

func listRules(ing *networkingv1.Ingress) rulesByHost {
	list := rulesByHost{byHost: map[string][]int{}}
	for i, rule := range ing.Spec.Rules {
		host, ok := hostName(rule.Host)
		if !ok {
			list.invalid = append(list.invalid, i)
			continue
		}
		list.byHost[host] = append(list.byHost[host], i)
		if list.first == "" || host < list.first {
			list.first = host
		}
	}
	// An Ingress without rules names the default host by spec.defaultBackend.
	list.first = cmp.Or(list.first, model.DefaultHost)
	return list
}

const (
	// fewRules are listed anew for each host.
	fewRules = 8
	// mostRules is how many rules are remembered, of all Ingresses together.
	mostRules = 100_000
)

// A rulesMemo remembers the rules of Ingresses with many: each of their hosts
// would go through all of them.
type rulesMemo struct {
	lists map[types.NamespacedName]knownRules
	rules int
}

type knownRules struct {
	of   *networkingv1.Ingress
	list rulesByHost
}

func (m *rulesMemo) of(ing *networkingv1.Ingress) rulesByHost {
	n := len(ing.Spec.Rules)
	if n <= fewRules {
		return listRules(ing)
	}
	name := types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}
	list, known := m.lists[name]
	if known && list.of == ing {
		return list.list
	}
	if known {
		m.rules -= len(list.of.Spec.Rules)
	}
	if m.lists == nil || m.rules+n > mostRules {
		m.lists, m.rules = map[types.NamespacedName]knownRules{}, 0
	}
	list = knownRules{ing, listRules(ing)}
	m.lists[name] = list
	m.rules += n
	return list.list
}
