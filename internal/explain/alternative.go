package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// explainAlternatives are the backends that policies may choose. The Ingresses
// that stand aside for the host have a part in it, whatever became of theirs.
func (x *explainer) explainAlternatives(won *model.Route, rule build.RuleTrace) {
	for _, ing := range x.Store.Canaries(x.out.Name.Host) {
		x.ingress(ing)
	}
	for _, p := range won.Policies {
		list, ok := p.Value.([]model.Alternative)
		if !ok {
			continue
		}
		first := len(x.out.Backends)
		for _, a := range list {
			x.explainBackend(a.Backend, AlternativeBackend)
		}
		traces := slices.DeleteFunc(slices.Clone(rule.Alternatives), func(t build.AlternativeTrace) bool { return t.Feature != p.Feature })
		said := x.out.Backends[first:]
		for i, t := range traces {
			said[i].Ingress, said[i].Field = x.ingress(t.Ingress), t.Field
		}
		x.choose(p, won, said)
	}
}

// choose asks a feature which of its alternatives is asked.
func (x *explainer) choose(p model.Policy, won *model.Route, alternatives []Backend) {
	f := x.featureOf(p)
	if f.Choose == nil {
		return
	}
	q := x.question(won, x.out.Request.Scheme)
	q.Policy = p.Value
	chosen := f.Choose(q)
	for i := range alternatives {
		alternatives[i].When, alternatives[i].Share = chosen.Whens[i], chosen.Shares[i]
	}
	if x.chosen.Backend == "" {
		x.chosen = chosen
	}
}

// endpoints is how many endpoints of a backend on the route are asked.
func (x *explainer) endpoints(backend string) int {
	for _, b := range x.out.Backends {
		if b.Key == backend {
			return len(b.Asked)
		}
	}
	return 0
}

// backendAnswer is that of the alternative which is asked, or of the first
// backend that has an endpoint.
func (x *explainer) backendAnswer(won *model.Route) Answer {
	if won.Backend == "" {
		return Answer{Status: notFound, Why: "the built-in default backend answers"}
	}
	if at := x.chosen.Backend; at != "" {
		return Answer{Backend: at, Endpoints: x.endpoints(at), Why: x.chosen.Why}
	}
	for _, b := range x.out.Backends {
		if len(b.Asked) == 0 || b.Role == AlternativeBackend {
			continue
		}
		why := "the route leads there"
		switch b.Role {
		case FallbackBackend:
			why = "the annotation " + x.cause(feature.FallbackBackend) + " names it, since the route's own backend has no endpoint"
		case DefaultBackend:
			why = "it is the default backend"
		}
		return Answer{Backend: b.Key, Endpoints: len(b.Asked), Why: why + x.unless()}
	}
	if won.Default {
		return Answer{Status: notFound, Why: "the default backend has no endpoint" + x.unless()}
	}
	return Answer{Status: unavailable, Why: "no endpoint of backend " + won.Backend + " can be asked" + x.unless()}
}

// shared tells whether alternatives get a share of requests like this one.
func (x *explainer) shared() bool {
	return slices.ContainsFunc(x.out.Backends, func(b Backend) bool { return b.Share > 0 })
}

// unless says what alternatives have to do with an answer that is not theirs.
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
