package routing

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/setting"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
)

// A contribution is what one Ingress gives a host.
type contribution struct {
	*networkingv1.Ingress
	// Parsed is what its annotations say, and problems what features found besides
	// on its routes.
	*feature.Parsed
	problems []feature.Problem
	// routed is set when the Ingress has a route on the host.
	routed bool
	// rules are the numbers of the Ingress's rules for the host.
	rules []int
	// first is set on one of the Ingress's hosts: with the others nothing is reported
	// of what is wrong with the Ingress as a whole.
	first bool
	// invalid are the rules whose host is not a DNS name.
	invalid []int
}

// contributionsOf are the Ingresses of a host with what each gives it, the oldest first.
func (l *hostBuilder) contributionsOf(ingresses []*networkingv1.Ingress) []*contribution {
	contributions := make([]*contribution, len(ingresses))
	for i, ing := range ingresses {
		contributions[i] = l.contributionOf(ing)
	}
	return contributions
}

func (l *hostBuilder) contributionOf(ing *networkingv1.Ingress) *contribution {
	rules := l.builder.rules.Of(ing)
	p := &contribution{Ingress: ing, Parsed: l.builder.settings.Read(ing, l.view), rules: rules.ByHost[l.host], first: rules.First == l.host}
	if p.first {
		p.invalid = rules.Invalid
	}
	return p
}

// implyOfHost has all Ingresses of the host follow what one says for all of them.
func (l *hostBuilder) implyOfHost(contributions []*contribution) {
	owners := make([]*feature.Parsed, len(contributions))
	for i, p := range contributions {
		owners[i] = p.Parsed
	}
	for i, p := range l.builder.settings.Schema.ImplyOfHost(owners) {
		contributions[i].Parsed = p
	}
}

// reportWhole reports what is wrong with an Ingress regardless of its hosts, besides
// problems.
func (l *hostBuilder) reportWhole(p *contribution, problems []feature.Problem) {
	if !p.first {
		return
	}
	l.findings = append(l.findings, setting.Findings(spec.ObjectName(p.Ingress), problems)...)
	l.findings = append(l.findings, l.builder.settings.UnknownAnnotations(p.Ingress)...)
	for _, i := range p.invalid {
		l.refuse(p, fmt.Sprintf("spec.rules[%d].host", i), "this rule is not served",
			&spec.Rejection{Code: finding.InvalidValue, Message: spec.BadHost(p.Spec.Rules[i].Host)})
	}
}
