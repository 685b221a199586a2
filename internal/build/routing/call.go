package routing

import (
	"cmp"
	"slices"

	"github.com/headgate/headgate/internal/syntax/nginxsyntax"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

// CallerOf is the object with the problems of a backend that is not a Service's: the
// ConfigMap with the options, or the oldest Ingress that calls it.
func (b *Builder) CallerOf(key string, v View) (object, field string) {
	if configMap := v.ConfigMap(); v.CalledByOptions(key) && configMap != nil {
		field = b.callField(b.settings.Options(v).Config.Values(), key, configMap.Data, func(s feature.AnySetting) string { return s.Spec().Key })
		return "configmap/" + configMap.Namespace + "/" + configMap.Name, field
	}
	callers := v.Callers(key)
	if len(callers) == 0 {
		return "", ""
	}
	oldest := slices.MinFunc(callers, spec.CompareAge)
	field = b.callField(b.settings.Read(oldest, v).Values(), key, oldest.Annotations, b.settings.Annotation)
	return spec.ObjectName(oldest), cmp.Or(field, "metadata.annotations")
}

// callField is the first written setting of a feature that calls a backend.
func (b *Builder) callField(v feature.Values, key string, written map[string]string, name func(feature.AnySetting) string) string {
	for _, f := range b.features {
		if f.Calls == nil || !slices.ContainsFunc(f.Calls(v), func(c model.Call) bool { return leadsTo(c, key) }) {
			continue
		}
		for _, s := range f.Settings {
			if name := name(s); written[name] != "" {
				return name
			}
		}
	}
	return ""
}

// leadsTo reports whether a backend is a call's, on the host that it names where
// the call is to the host itself.
func leadsTo(call model.Call, key string) bool {
	if call.SameHost {
		name, _, _ := spec.SplitKey(key)
		call.Host = name.Name
	}
	return call.Backend() == key
}

// Needed reports whether an Ingress, or the options, call a backend that is not a Service's. Those who
// call their own host don't as long as that has a route for it.
func (b *Builder) Needed(key string, v View) bool {
	if v.CalledByOptions(key) {
		return true
	}
	name, _, _ := spec.SplitKey(key)
	// An Ingress that is refused at the host calls nothing there.
	refused := map[*networkingv1.Ingress]bool{}
	for _, s := range v.Strangers(name.Name) {
		refused[s.Ingress] = true
	}
	for _, ing := range v.Callers(key) {
		for _, call := range b.settings.Calls(b.settings.Read(ing, v).Values()) {
			if !call.SameHost {
				if call.Backend() == key {
					return true
				}
				continue
			}
			if !refused[ing] && !b.answersOf(name.Name, v).has(call.Path) {
				return true
			}
		}
	}
	return false
}

// lastAnswers are those of one host, as long as the View shows the same: backends of one
// host are built one after the other.
type lastAnswers struct {
	view    View
	changes uint64
	host    string
	answers *answers
}

// answersOf are those of a host that is not being built.
func (b *Builder) answersOf(host string, v View) *answers {
	if last := b.last; last.view != v || last.changes != v.Changes() || last.host != host {
		l := hostBuilder{
			builder: b, view: v, config: b.settings.Options(v).Config, host: host,
			taken: map[routeKey]string{}, compiled: map[string]expression{},
		}
		l.contributions = l.contributionsOf(spec.OldestFirst(v.Ingresses(host)))
		l.patterns = l.anyPatterns()
		l.placeRules()
		b.last = lastAnswers{v, v.Changes(), host, l.newAnswers()}
	}
	return b.last.answers
}

// answers know whether a host has a route for a path that does not ask the host itself, so
// that a request for it comes to an end. They look at routes one by one, not at which of
// several takes a request: where a route that asks the host itself does, the data plane
// ends the circle, and the request is refused.
type answers struct {
	// exact are whole paths, begins what paths begin with: of a host of expressions in
	// lower case.
	exact       map[string]bool
	begins      prefixes
	expressions []*pcre.Pattern
	caseless    bool
	known       map[string]bool
	// compared counts the paths that were compared with expressions, up to
	// model.MaxHostCalls.
	compared int
}

// newAnswers are those of the rules that were placed.
func (l *hostBuilder) newAnswers() *answers {
	a := &answers{exact: map[string]bool{}, caseless: l.patterns, known: map[string]bool{}}
	asksItself := map[*contribution]bool{}
	for _, p := range l.contributions {
		asksItself[p] = l.asksItself(p)
	}
	var begins []string
	for _, r := range l.placed {
		text := r.where.written()
		if r.leftOut || asksItself[r.by] && !feature.Exempt(r.by.Values(), text) {
			continue
		}
		compiled, isExpression := l.compiled[text]
		switch {
		case l.patterns && isExpression:
			a.expressions = append(a.expressions, compiled.pattern)
		case l.patterns:
			begins = append(begins, nginxsyntax.LowerASCII(text))
		case r.where.kind == model.Exact:
			a.exact[text] = true
		case r.where == root:
			begins = append(begins, "")
		default:
			a.exact[text] = true
			begins = append(begins, r.where.path+"/")
		}
	}
	a.begins = newPrefixes(begins)
	return a
}

// answers is the function that features get: see answers.
func (l *hostBuilder) answers(path string) bool {
	if l.answered == nil {
		l.answered = l.newAnswers()
	}
	return l.answered.has(path)
}

func (a *answers) has(path string) bool {
	if path == "" {
		return false
	}
	known, ok := a.known[path]
	if !ok {
		known = a.find(path)
		a.known[path] = known
	}
	return known
}

func (a *answers) find(path string) bool {
	text := path
	if a.caseless {
		text = nginxsyntax.LowerASCII(path)
	}
	if a.exact[text] || a.begins.longest(text) >= 0 {
		return true
	}
	if len(a.expressions) == 0 || a.compared == model.MaxHostCalls {
		return false
	}
	a.compared++
	for i, pattern := range a.expressions {
		switch found, err := pattern.Match(path); {
		case err != nil:
			// It took its time once.
			a.expressions = slices.Delete(a.expressions, i, i+1)
			return false
		case found:
			return true
		}
	}
	return false
}

func (l *hostBuilder) asksItself(p *contribution) bool {
	return slices.ContainsFunc(l.builder.settings.Calls(p.Values()), func(c model.Call) bool { return c.SameHost })
}
