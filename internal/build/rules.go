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
	// reader reads the Ingress's annotations for all of its routes on the host:
	// each value is parsed, and told, once.
	reader *feature.Reader
	// rules are the numbers of the Ingress's rules for the host.
	rules []int
	// first is set on one of the Ingress's hosts: with the others nothing is told
	// of what is wrong with the Ingress as a whole.
	first bool
	// invalid are the rules whose host is no DNS name.
	invalid []int
	// fallback is the backend that answers where a route's own has no endpoint.
	fallback string
	// routed is set when the features have seen a route of this Ingress.
	routed bool
}

// partsOf are the Ingresses of a host with what each gives it, the oldest first.
func (l *layout) partsOf(ingresses []*networkingv1.Ingress) []*part {
	parts := make([]*part, len(ingresses))
	for i, ing := range ingresses {
		rules := l.builder.rules.of(ing)
		p := &part{
			Ingress: ing, reader: l.builder.reader(ing, l.config, l.view).On(feature.Host{Name: l.host, ManyNames: IsManyNames(l.host), Answers: l.answers}),
			rules: rules.byHost[l.host], first: rules.first == l.host,
		}
		if p.first {
			p.invalid = rules.invalid
		}
		p.reader.Police(l.builder.risks)
		if ref, ok := l.builder.fallback(ing.Namespace, p.reader); ok {
			p.fallback = ref.Key
		}
		parts[i] = p
	}
	return parts
}

// tellWhole tells what is wrong with an Ingress whatever its hosts are.
func (l *layout) tellWhole(p *part) {
	if !p.first {
		return
	}
	l.findings = append(l.findings, l.builder.unknownAnnotations(p.Ingress)...)
	for _, i := range p.invalid {
		l.refuse(p, fmt.Sprintf("spec.rules[%d].host", i), "this rule is not served",
			&refusal{finding.InvalidValue, badHost(p.Spec.Rules[i].Host)})
	}
	if !p.routed {
		l.builder.applyFeatures(&model.Route{}, p.reader)
	}
	// What an Ingress means by standing aside was read before this reader was,
	// by its own: a bad value is noted here.
	l.builder.alternative(p.reader)
	l.findings = append(l.findings, problemFindings(objectName(p.Ingress), p.reader.Problems())...)
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
	lists map[types.NamespacedName]memo[*networkingv1.Ingress, rulesByHost]
	rules int
}

func (m *rulesMemo) of(ing *networkingv1.Ingress) rulesByHost {
	n := len(ing.Spec.Rules)
	if n <= fewRules {
		return listRules(ing)
	}
	name := types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}
	list, known := m.lists[name]
	if known && list.of == ing {
		return list.result
	}
	if known {
		m.rules -= len(list.of.Spec.Rules)
	}
	if m.lists == nil || m.rules+n > mostRules {
		m.lists, m.rules = map[types.NamespacedName]memo[*networkingv1.Ingress, rulesByHost]{}, 0
	}
	result := list.get(ing, listRules)
	m.lists[name] = list
	m.rules += n
	return result
}
