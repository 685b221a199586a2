package build

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/setting"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// Globals builds what holds for every request. Only here are the ConfigMap's
// bad and unknown keys found, those that can't be followed, and that there is none.
func (b *Builder) Globals(v View) (model.Globals, []finding.Finding) {
	values, problems := b.settings.Process(v)
	var g model.Globals
	out := feature.ProcessOut{Report: feature.NewReport(values, feature.KeyDenies), Process: &g.Process}
	for _, f := range b.features {
		if f.Process == nil {
			continue
		}
		out.Policy = nil
		if f.Process(values, &out); out.Policy != nil {
			g.Policies = append(g.Policies, model.Policy{Feature: f.Name, Value: out.Policy})
		}
	}
	var plain model.Route
	b.applyFeatures(values, feature.RouteOut{Route: &plain})
	g.Default, g.Files = plain.Profile, plain.Files
	b.chooseTexts(v, values, &g, &out)

	var fs []finding.Finding
	if object, name := v.ConfigMap(), v.ConfigMapName(); object == nil && name.Name != "" {
		fs = []finding.Finding{missingConfigMap(name, "configmap", "all options have their defaults")}
	} else if object != nil {
		fs = setting.Findings("configmap/"+object.Namespace+"/"+object.Name, slices.Concat(problems, out.Problems))
	}
	return g, finding.Sort(fs)
}

// chooseTexts has NGINX test the texts of the administrator, and features say what follows.
func (b *Builder) chooseTexts(v View, values feature.Values, g *model.Globals, out *feature.ProcessOut) {
	var refusals feature.Refusals
	if *g, refusals = choose(*g, v.Passthrough(), b.whole); len(refusals) == 0 {
		return
	}
	for _, f := range b.features {
		if f.Refused == nil {
			continue
		}
		out.Policy = nil
		if f.Refused(values, refusals, out); out.Policy != nil {
			g.Policies = append(g.Policies, model.Policy{Feature: f.Name, Value: out.Policy})
		}
	}
}

// missingConfigMap is the finding that there is no ConfigMap of the name in a flag.
func missingConfigMap(name types.NamespacedName, flag, effect string) finding.Finding {
	return finding.Finding{
		Object: "configmap/" + name.String(), Field: "metadata.name", Code: finding.MissingObject,
		Message: "the ConfigMap does not exist or can't be read, but --" + flag + " names it", Effect: effect,
	}
}

// applyFeatures lets the features write into a route.
func (b *Builder) applyFeatures(v feature.Values, out feature.RouteOut) feature.RouteOut {
	out.Report = feature.NewReport(v, "the paths of this Ingress answer 503")
	for _, f := range b.features {
		if f.Route == nil {
			continue
		}
		before := len(out.Route.Policies)
		f.Route(v, &out)
		if len(out.Route.Policies) > before && (f.Predict[feature.AuthPhase] != nil || f.Predict[feature.LimitPhase] != nil) {
			out.Guards = append(out.Guards, f.Name)
		}
	}
	return out
}
