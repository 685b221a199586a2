package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/build/routing"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// explainCanaries describes the backends that policies may choose. All canary
// Ingresses of the host are involved, even if their rules have no effect.
func (x *explainer) explainCanaries(won *model.Route, rule routing.RuleTrace) {
	for _, ing := range x.Store.Canaries(x.out.Name.Host) {
		x.ingress(ing)
	}
	for _, p := range won.Policies {
		list, ok := p.Value.([]model.Canary)
		if !ok {
			continue
		}
		first := len(x.out.Backends)
		for _, a := range list {
			x.explainBackend(a.Backend, report.CanaryBackend)
		}
		traces := slices.DeleteFunc(slices.Clone(rule.Canaries), func(t routing.CanaryTrace) bool { return t.Feature != p.Feature })
		said := x.out.Backends[first:]
		for i, t := range traces {
			said[i].Ingress, said[i].Field = x.ingress(t.Ingress), t.Field
		}
		x.choose(p, won, said)
	}
}

// choose asks a feature which of its canaries gets the request.
func (x *explainer) choose(p model.Policy, won *model.Route, canaries []report.Backend) {
	f := x.featureOf(p)
	if f.Choose == nil {
		return
	}
	q := x.simulated(won, x.out.Request.Scheme)
	q.Policy = p.Value
	chosen := f.Choose(q)
	for i := range canaries {
		canaries[i].When, canaries[i].Share = chosen.Whens[i], chosen.Shares[i]
	}
	if x.chosen.Backend == "" {
		x.chosen = chosen
	}
}

// endpoints is the number of endpoints in use of a backend of the route.
// A name that was not looked up counts as one.
func (x *explainer) endpoints(backend string) int {
	for _, b := range x.out.Backends {
		if b.Key == backend && b.Unresolved != "" {
			return 1
		}
		if b.Key == backend {
			return len(b.Used)
		}
	}
	return 0
}

// backendAnswer is the answer of the canary that gets the request, or of the first
// backend with an endpoint.
func (x *explainer) backendAnswer(won *model.Route) report.Answer {
	if won.Backend == "" {
		return report.Answer{Status: notFound, Why: "the built-in default backend answers"}
	}
	if at := x.chosen.Backend; at != "" {
		return report.Answer{Backend: at, Endpoints: x.endpoints(at), Why: x.chosen.Why}
	}
	for _, b := range x.out.Backends {
		if len(b.Used) == 0 && b.Unresolved == "" || b.Role == report.CanaryBackend || b.Role == report.ErrorBackend {
			continue
		}
		why := "it is the route's backend"
		switch b.Role {
		case report.FallbackBackend:
			why = "the annotation " + x.cause(feature.FallbackBackend) + " names it, and the route's own backend has no endpoint"
		case report.DefaultBackend:
			why = "it is the default backend"
		}
		if b.Unresolved != "" {
			why += "; the addresses of " + b.Unresolved + " are looked up by the controller alone"
		}
		return report.Answer{Backend: b.Key, Endpoints: x.endpoints(b.Key), Why: why + x.unless()}
	}
	if won.Default {
		return report.Answer{Status: notFound, Why: "the default backend has no endpoint" + x.unless()}
	}
	return report.Answer{Status: unavailable, Why: "backend " + won.Backend + " has no endpoint in use" + x.unless()}
}

// shared reports whether canaries get a share of requests like this one.
func (x *explainer) shared() bool {
	return slices.ContainsFunc(x.out.Backends, func(b report.Backend) bool { return b.Share > 0 })
}

// unless returns when a canary answers instead.
func (x *explainer) unless() string {
	var parts []string
	for _, b := range x.out.Backends {
		if b.Share > 0 {
			parts = append(parts, fmt.Sprintf("%s%% of requests go to %s", strconv.FormatFloat(b.Share*100, 'g', 4, 64), b.Key))
		}
	}
	switch {
	case len(parts) > 0:
		return "; " + strings.Join(parts, ", ")
	case x.chosen.Why != "":
		return "; " + x.chosen.Why
	}
	return ""
}
