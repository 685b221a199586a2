package explain

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
)

// first is the first predicted answer, and the conditions under which another
// one comes before it.
func first(predictions []prediction.Answer) (_ report.Answer, depends []string) {
	for _, said := range predictions {
		if said.Status != 0 {
			return report.Answer{Status: said.Status, Location: said.Location, Why: said.Why}, nil
		}
		if said.Why != "" {
			depends = append(depends, said.Why)
		}
	}
	return report.Answer{}, depends
}

// predictions are those of the features with a policy on the route for a phase, in
// their order.
func (x *explainer) predictions(won *model.Route, scheme string, phase prediction.Phase) (list []prediction.Answer) {
	q := x.simulated(won, scheme)
	for _, p := range won.Policies {
		q.Policy, q.Global = p.Value, nil
		for _, g := range x.globals.Policies {
			if g.Feature == p.Feature {
				q.Global = g.Value
			}
		}
		if predict := x.featureOf(p).Predict[phase]; predict != nil {
			list = append(list, predict(q))
		}
	}
	return list
}

// admissions are the predictions of the features that look at each request before it is
// routed.
func (x *explainer) admissions(scheme string) (list []prediction.Answer) {
	q := x.simulated(&model.Route{}, scheme)
	for _, g := range x.globals.Policies {
		if predict := x.featureOf(g).Predict[prediction.AdmitPhase]; predict != nil {
			q.Global = g.Value
			list = append(list, predict(q))
		}
	}
	return list
}

// simulated is the request as features get it.
func (x *explainer) simulated(won *model.Route, scheme string) prediction.Request {
	r := x.out.Request
	_, secured := x.router.Certificate(r.Host)
	own := won.Backend
	if won.Default {
		own = ""
	}
	return prediction.Request{
		Scheme: scheme, Encrypted: x.encrypted, Method: r.Method, HostName: r.Host, URI: x.request.uri, Path: r.Path, Headers: r.Headers,
		From: x.from, HasTLS: secured, HTTPSPort: x.HTTPSPort, Authority: x.request.authority, Asked: x.asked, Relative: won.Relative,
		Jumps:       won.Profile != x.globals.Default || won.Variant != (model.Variant{}),
		Backend:     own,
		HasEndpoint: func(backend string) bool { return x.endpoints(backend) > 0 },
	}
}

// unauthorized takes precedence over the status of other rejections.
const unauthorized = 401

// authCheck combines the predictions of all auth checks of the route, as
// lua/headgate/access.lua does.
func (x *explainer) authCheck(won *model.Route, scheme string) (_ report.Answer, depends []string) {
	said := x.predictions(won, scheme, prediction.AuthPhase)
	if won.SatisfyAny && slices.ContainsFunc(said, func(p prediction.Answer) bool { return !p.Neutral }) {
		said = slices.DeleteFunc(said, func(p prediction.Answer) bool { return p.Neutral })
	}
	if !won.SatisfyAny || len(said) < 2 {
		return first(said)
	}
	var whys []string
	status, open := 0, false
	for _, s := range said {
		switch {
		case s == prediction.Answer{}:
			return report.Answer{}, nil
		case s.Status == 0:
			open = true
		case status != unauthorized:
			status = s.Status
		}
		whys = append(whys, s.Why)
	}
	why := strings.Join(whys, "; ")
	if !open {
		return report.Answer{Status: status, Why: "no auth check allows the request: " + why}, nil
	}
	return report.Answer{}, []string{"one auth check that allows the request is enough" + x.because(feature.AnyAuth) + ": " + why}
}

// cause is the setting that has an effect, or empty.
func (x *explainer) cause(of feature.Effect) string { return feature.CauseOf(x.Features, of) }

// because is the setting that has an effect, for the end of a sentence.
func (x *explainer) because(of feature.Effect) string {
	if name := x.cause(of); name != "" {
		return " (" + name + ")"
	}
	return ""
}
