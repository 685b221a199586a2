package build

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/endpoint"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/pcre"
)

// outside fills in the endpoints of a backend that is not a Service's.
func (t *backendMaker) outside(portText string) {
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return
	}
	if address, ok := model.Address(t.name.Name); ok {
		if !allowed(t.view)(netip.AddrPortFrom(address, uint16(port))) {
			t.unreachable(t.field, finding.InvalidValue, t.name.Name+" is a loopback, link-local or unspecified address, or one of a metadata service or of Headgate itself: "+
				"--allow-local-svc-external-name is required to connect to it")
			return
		}
		t.backend.Endpoints = []netip.AddrPort{netip.AddrPortFrom(address, uint16(port))}
		return
	}
	if problem := endpoint.CheckName(t.name.Name); problem != "" {
		t.unreachable(t.field, finding.InvalidValue, problem)
		return
	}
	t.resolved(t.field, t.name.Name, uint16(port))
}

// callerOf is the object with the problems of a backend that is not a Service's: the
// ConfigMap with the options, or the oldest Ingress that calls it.
func (b *Builder) callerOf(key string, v View) (object, field string) {
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

// needed reports whether an Ingress, or the options, call a backend that is not a Service's. Those who
// call their own host don't as long as that has a route for it.
func (b *Builder) needed(key string, v View) bool {
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
			if !refused[ing] && !b.answers(name.Name, call.Path, v) {
				return true
			}
		}
	}
	return false
}

// answers reports whether a host has a route for a path that does not ask the
// host itself, without building the host.
func (b *Builder) answers(host, path string, v View) bool {
	l := hostBuilder{builder: b, view: v, config: b.settings.Options(v).Config, host: host}
	l.contributions = l.contributionsOf(spec.OldestFirst(v.Ingresses(host)))
	l.patterns = l.anyPatterns()
	return l.answers(path)
}

// answers reports whether the host has a route for a path that does not ask the
// host itself, so that a request for it comes to an end. It looks at rules one
// by one, not at which of several takes a request: where a route that asks the
// host itself does, the data plane ends the circle, and the request is refused.
func (l *hostBuilder) answers(path string) bool {
	known, ok := l.answered[path]
	if ok || path == "" {
		return known
	}
	for _, p := range l.contributions {
		asksItself := l.asksItself(p)
		for _, rule := range p.paths() {
			where, ok := routeKeyOf(rule)
			if ok && l.covers(where, path) && (!asksItself || feature.Exempt(p.Values(), where.written())) {
				known = true
			}
		}
	}
	if l.answered == nil {
		l.answered = map[string]bool{}
	}
	l.answered[path] = known
	return known
}

func (l *hostBuilder) asksItself(p *contribution) bool {
	return slices.ContainsFunc(l.builder.settings.Calls(p.Values()), func(c model.Call) bool { return c.SameHost })
}

func (l *hostBuilder) covers(where routeKey, path string) bool {
	text := where.written()
	switch {
	case l.patterns && isLiteral(text):
		return len(path) >= len(text) && strings.EqualFold(path[:len(text)], text)
	case l.patterns:
		pattern, err := pcre.Compile("^"+text, pcre.Options{Caseless: true})
		if err != nil {
			return false
		}
		found, err := pattern.Match(path)
		return found && err == nil
	case where.kind == model.Exact || where == root:
		return where == root || path == text
	}
	return path == text || strings.HasPrefix(path, where.path+"/")
}
