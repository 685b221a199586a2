package explain

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
)

// policies describes settings and where they come from.
func (x *explainer) policies(settings []feature.Reading) []report.Policy {
	list := make([]report.Policy, len(settings))
	for i, s := range settings {
		p := report.Policy{
			Feature: s.Feature, Setting: cmp.Or(s.Annotation, s.Key), Value: s.Value, From: string(s.From),
			Written: s.Written, By: s.By, Where: s.Where, Rejected: s.Refused, Denies: s.Denies, Idle: s.Idle,
		}
		switch {
		case s.KeyDenies && !s.Denies:
			p.Setting, p.From, p.Rejected, p.Denies = s.Key, string(feature.FromKey), true, true
			p.Written, p.Object = "", x.configMap()
		case s.From == feature.FromAnnotation || s.Refused:
			p.Object = spec.OriginName(s.Ingress)
			x.involve(p.Object)
		case s.From == feature.FromKey:
			p.Object = x.configMap()
		}
		list[i] = p
	}
	return list
}

// noteParts says which annotations have no part in the request on its route.
func (x *explainer) noteParts(won *model.Route) {
	q := x.simulated(won, x.out.Request.Scheme)
	for i := range x.out.Policies {
		p := &x.out.Policies[i]
		part := x.featureOf(model.Policy{Feature: p.Feature}).Part
		if part == nil || p.From != string(feature.FromAnnotation) || p.Rejected || p.Idle != "" {
			continue
		}
		q.Policy = nil
		if at := slices.IndexFunc(won.Policies, func(other model.Policy) bool { return other.Feature == p.Feature }); at >= 0 {
			q.Policy = won.Policies[at].Value
		}
		p.Idle = part(q, p.Setting, p.Value)
	}
}

// configMap returns the name of the ConfigMap with the keys, empty if there is none.
func (x *explainer) configMap() string {
	if object := x.Store.ConfigMap(); object != nil {
		return "configmap/" + object.Namespace + "/" + object.Name
	}
	return ""
}

// explainProcess adds the settings of the NGINX process: all of them, or those that may
// refuse any request.
func (x *explainer) explainProcess(all bool) {
	admits := func(p report.Policy) bool {
		return slices.ContainsFunc(x.Features, func(f feature.Feature) bool { return f.Name == p.Feature && f.Predict[prediction.AdmitPhase] != nil })
	}
	for _, p := range x.policies(x.Builder.TraceProcess(x.Store)) {
		if p.From == string(feature.FromKey) && (all || admits(p)) && !slices.Contains(x.out.Policies, p) {
			x.out.Policies = append(x.out.Policies, p)
		}
	}
}

// explainProfile describes how a profile differs from the default one.
func (x *explainer) explainProfile(p model.Profile) {
	said := &report.Profile{Name: p.Name(), Default: p == x.globals.Default}
	usual, directives := x.globals.Default, feature.Directives(x.Features)
	is, was := directives.Texts(p), directives.Texts(usual)
	for _, d := range directives {
		if is[d.Name] == "" && p.Protocol != usual.Protocol {
			continue // the protocol does not have the directive
		}
		x.differ(said, d.Name, cmp.Or(is[d.Name], "none"), cmp.Or(was[d.Name], "none"))
	}
	slices.SortFunc(said.Differs, func(a, b report.Difference) int { return cmp.Compare(a.Setting, b.Setting) })
	x.differ(said, "access phase", onOff(p.Access), onOff(usual.Access))
	x.differ(said, "protocol", p.Protocol, usual.Protocol)
	x.differ(said, "TLS", onOff(p.TLS), onOff(usual.TLS))
	x.out.Profile = said
}

func (x *explainer) differ(said *report.Profile, setting string, is, usual any) {
	if is != usual {
		said.Differs = append(said.Differs, report.Difference{Setting: setting, Value: fmt.Sprint(is), Default: fmt.Sprint(usual)})
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// encode encodes plain data as for the data plane.
func encode(value any) json.RawMessage {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("explain: a policy is not plain data: %v", err))
	}
	return bytes.TrimSpace(b.Bytes())
}
