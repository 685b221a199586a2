package build

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/setting"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
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
	b.routes.Apply(values, feature.RouteOut{Route: &plain})
	g.Default, g.Files = plain.Profile, plain.Files
	o := b.offered.Get(b.settings.Options(v).Config, b.offer)
	g.Common, g.Occasional = o.common, o.occasional
	about := b.chooseTexts(v, values, &g, &out)

	var fs []finding.Finding
	if object, name := v.ConfigMap(), v.ConfigMapName(); object == nil && name.Name != "" {
		fs = []finding.Finding{missingConfigMap(name, "configmap", "all options have their defaults")}
	} else if object != nil {
		fs = setting.Findings("configmap/"+object.Namespace+"/"+object.Name, slices.Concat(problems, out.Problems))
	}
	return g, finding.Sort(append(fs, about...))
}

// An offered is what NGINX has before an Ingress asks for it.
type offered struct{ common, occasional []model.Profile }

// offer makes the profiles of the annotations that features list, each once.
func (b *Builder) offer(config *feature.Config) (o offered) {
	add := func(list *[]model.Profile, annotations map[string]string) {
		whole := make(map[string]string, len(annotations))
		for name, text := range annotations {
			whole[b.settings.Name(name)] = text
		}
		parsed := b.settings.Schema.Parse(model.Origin{}, whole, config)
		route := model.Route{Kind: model.Prefix, Path: "/"}
		out := b.routes.Apply(parsed.Values(), feature.RouteOut{Route: &route})
		if p := route.Profile; !out.Denied && !parsed.Denied() && !slices.Contains(o.common, p) && !slices.Contains(o.occasional, p) {
			*list = append(*list, p)
		}
	}
	for _, f := range b.features {
		for _, annotations := range f.Common {
			add(&o.common, annotations)
		}
	}
	for _, f := range b.features {
		for _, annotations := range f.Occasional {
			add(&o.occasional, annotations)
		}
	}
	return o
}

// chooseTexts has NGINX test the texts of the administrator, and features say what follows.
func (b *Builder) chooseTexts(v View, values feature.Values, g *model.Globals, out *feature.ProcessOut) (about []finding.Finding) {
	if t := v.Template(); t != nil {
		g.Process.Snippets.Template, _ = model.NewAdminText(t.Text)
	}
	var refusals feature.Refusals
	if *g, refusals = choose(*g, v.Passthrough(), b.whole); len(refusals) == 0 {
		return nil
	}
	if r, is := refusals[model.InTemplate]; is {
		about = append(about, refusedTemplate(v.Template(), r))
	}
	denied := out.Denied
	out.Denied = false
	defer func() { g.Unguarded, out.Denied = out.Denied, out.Denied || denied }()
	for _, f := range b.features {
		if f.Refused == nil {
			continue
		}
		out.Policy = nil
		if f.Refused(values, refusals, out); out.Policy != nil {
			g.Policies = append(g.Policies, model.Policy{Feature: f.Name, Value: out.Policy})
		}
	}
	return about
}

// refusedTemplate is the finding about a template that NGINX does not get.
func refusedTemplate(t *source.Template, r feature.Refusal) finding.Finding {
	f := finding.Finding{Object: "file/" + strings.TrimPrefix(t.Name, "/"), Code: finding.InvalidValue, Message: r.Reason, Rejected: true}
	if r.Line > 0 {
		f.Field = fmt.Sprintf("line %d", r.Line)
	}
	if r.Waits {
		f.Code = finding.Waits
	}
	if r.Kept {
		f.Effect = feature.KeptUntilStart
	} else {
		f.Effect, f.Denies = "all requests are answered 503: the template may control access", true
	}
	return f
}

// missingConfigMap is the finding that there is no ConfigMap of the name in a flag.
func missingConfigMap(name types.NamespacedName, flag, effect string) finding.Finding {
	return finding.Finding{
		Object: "configmap/" + name.String(), Field: "metadata.name", Code: finding.MissingObject,
		Message: "the ConfigMap does not exist or can't be read, but --" + flag + " names it", Effect: effect,
	}
}
