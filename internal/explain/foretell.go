package explain

import (
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// first is the first answer of those foretold, and on what else it depends that
// there is none.
func first(foretold []feature.Foretold) (_ Answer, depends []string) {
	for _, said := range foretold {
		if said.Status != 0 {
			return Answer{Status: said.Status, Location: said.Location, Why: said.Why}, nil
		}
		if said.Why != "" {
			depends = append(depends, said.Why)
		}
	}
	return Answer{}, depends
}

// foretold is what the features of the policies on the route say of a phase, in
// their order, as far as they have something to say.
func (x *explainer) foretold(won *model.Route, scheme string, phase feature.Phase) (list []feature.Foretold) {
	q := x.question(won, scheme)
	for _, p := range won.Policies {
		q.Policy, q.Global = p.Value, nil
		for _, g := range x.globals.Policies {
			if g.Feature == p.Feature {
				q.Global = g.Value
			}
		}
		if said, ok := x.featureOf(p).Answer(phase, q); ok {
			list = append(list, said)
		}
	}
	return list
}

// question is what features are asked of the request.
func (x *explainer) question(won *model.Route, scheme string) feature.Question {
	r := x.out.Request
	_, secured := x.router.Certificate(r.Host)
	return feature.Question{
		Scheme: scheme, Method: r.Method, HostName: r.Host, URI: r.uri, Path: r.Path, Headers: r.Headers,
		From: x.from, Secured: secured, HTTPSPort: x.HTTPSPort, Authority: r.authority, Relative: won.Relative,
		Jumps:       won.Profile != x.globals.Default || won.Mode != (model.Mode{}),
		HasEndpoint: func(backend string) bool { return x.endpoints(backend) > 0 },
	}
}

// unauthorized is told rather than another refusal.
const unauthorized = 401

// judge says what becomes of the request where features judge who sends it, as
// lua/headgate/access.lua does.
func (x *explainer) judge(won *model.Route, scheme string) (_ Answer, depends []string) {
	said := x.foretold(won, scheme, feature.AuthPhase)
	if !won.AnyJudge || len(said) < 2 {
		return first(said)
	}
	var whys []string
	status, open := 0, false
	for _, s := range said {
		switch {
		case s == feature.Foretold{}:
			return Answer{}, nil
		case s.Status == 0:
			open = true
		case status != unauthorized:
			status = s.Status
		}
		whys = append(whys, s.Why)
	}
	why := strings.Join(whys, "; ")
	if !open {
		return Answer{Status: status, Why: "nobody lets the request pass: " + why}, nil
	}
	return Answer{}, []string{"one who lets the request pass is enough" + x.because(feature.AnyAuth) + ": " + why}
}

// cause is the setting that has an effect, empty if no feature names one.
func (x *explainer) cause(of feature.Effect) string {
	for _, f := range x.Features {
		if name := f.Causes[of]; name != "" {
			return name
		}
	}
	return ""
}

// because names the setting that has an effect at the end of a sentence.
func (x *explainer) because(of feature.Effect) string {
	if name := x.cause(of); name != "" {
		return " (" + name + ")"
	}
	return ""
}
