package feature

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// A Schema reads and merges annotations by the declarations of features.
type Schema struct {
	prefix   string // of annotations, with its slash
	settings []*schemaSetting
	// byAnnotation and byKey are by the whole names.
	byAnnotation, byKey map[string]*schemaSetting
	lacks               []Capability
	// implies are those of the features, see Feature.Implies.
	implies []func(Values, Scope) []Implied
	// Try has NGINX test directives, nil where there is none.
	Try Try
	// Sockets are those of this machine.
	Sockets Sockets
}

type schemaSetting struct {
	SettingSpec
	feature string
	place   int
	// leading is the leading annotation of the feature's settings with MergeTogether.
	leading string
}

// AllSettings are the settings of all features, and those of Tenancy.
func AllSettings(features []Feature) []AnySetting {
	list := Tenancy()
	for _, f := range features {
		list = append(list, f.Settings...)
	}
	return list
}

// NewSchema collects the settings of features. Prefix stands before the names of
// annotations, without its slash. Lacking is what NGINX can't do.
func NewSchema(prefix string, features []Feature, lacking ...Capability) *Schema {
	s := &Schema{prefix: prefix + "/", byAnnotation: map[string]*schemaSetting{}, byKey: map[string]*schemaSetting{}, lacks: lacking}
	for _, f := range append([]Feature{{Settings: Tenancy()}}, features...) {
		first, leading := len(s.settings), ""
		if f.Implies != nil {
			s.implies = append(s.implies, f.Implies)
		}
		for _, setting := range f.Settings {
			d := &schemaSetting{SettingSpec: setting.Spec(), feature: f.Name, place: len(s.settings)}
			if _, text := d.Default.(model.AdminText); text && d.Scope != ScopeProcess || d.Scope == ScopeProcess && d.Annotation != "" {
				panic(fmt.Sprintf("feature: %s %q must have a key alone, of the scope process", d.Key, d.Annotation))
			}
			if d.Key != "" && d.Refers != NoObject && (d.Refers == Service || d.Scope != ScopeProcess) {
				panic(fmt.Sprintf("feature: the key %s must refer to a ConfigMap or a Secret, and have the scope process", d.Key))
			}
			s.settings = append(s.settings, d)
			if d.Leads {
				leading = d.Annotation
			}
			if d.Annotation != "" {
				s.byAnnotation[s.prefix+d.Annotation] = d
			}
			if d.Key != "" {
				s.byKey[d.Key] = d
			}
		}
		for _, d := range s.settings[first:] {
			d.leading = leading
		}
	}
	return s
}

// Known reports whether a setting has the annotation, by its whole name.
func (s *Schema) Known(annotation string) bool { return s.byAnnotation[annotation] != nil }

// HasKey reports whether a setting has a key of the ConfigMap.
func (s *Schema) HasKey(key string) bool { return s.byKey[key] != nil }

// Annotations are all that the settings have, without their prefix.
func (s *Schema) Annotations() []string {
	var names []string
	for _, d := range s.settings {
		if d.Annotation != "" {
			names = append(names, d.Annotation)
		}
	}
	return names
}

// A Problem is a value that does not have its full effect.
type Problem struct {
	// Ingress has it, its zero value for a key. Field is the annotation's whole
	// name, or the key.
	Ingress model.Origin
	Field   string
	Code    finding.Code
	Message string
	Effect  string
	// Rejected is set if the value is not used, and Denies if it denies.
	Rejected, Denies bool
	// unused is set if the value is not used, where ingress-nginx does not refuse it either.
	unused bool
	// unit is set on a problem of a setting with MergeTogether: it belongs to each
	// host, or backend, that the Ingress owns.
	unit bool
	// feature declares the setting, empty for what the administrator forbids.
	feature string
}

const routesDeny = "the paths of this Ingress answer 503"

// unused is the effect of a value that is not used: lists, names and texts have no other default than nothing.
func (s Setting[T]) unused() string {
	v := reflect.ValueOf(any(s.Default))
	if s.Annotation != "" && s.Key != "" || v.IsValid() && (!v.IsZero() || v.Kind() == reflect.Bool || v.CanInt() || v.Kind() == reflect.String && v.Type().Name() != "string") {
		return "using the default"
	}
	return "the setting has no effect"
}

// badValue returns the code and the message of a finding about an invalid value.
func badValue(text string, err error) (finding.Code, string) {
	must := finding.CutList(finding.WithoutUser(strings.ToValidUTF8(err.Error(), "�")), finding.MaxError)
	if text == "" {
		return finding.InvalidValue, "the value is empty: " + must
	}
	return finding.InvalidValue, fmt.Sprintf("invalid value %q: %s", finding.Shorten(text), must)
}

// Parsed is the parsed annotations of one Ingress, with the ConfigMap as their
// defaults. It is made in one pass and never changes.
type Parsed struct {
	problems  []Problem
	values    Values
	forbidden bool
	// keysDeny is set where a bad key denies the routes of the Ingress.
	keysDeny bool
	refers   []*schemaSetting
	// idle is set on an Ingress without a route on the host that is merged for.
	idle bool
}

// Idle is p for a host where the Ingress has no route: only its values with
// MergeTogether apply to such a host.
func (p *Parsed) Idle() *Parsed {
	idle := *p
	idle.idle = true
	return &idle
}

// Parse parses the annotations of an Ingress; there are none for routes without an
// Ingress. Attach looks up the objects that they refer to.
func (s *Schema) Parse(origin model.Origin, annotations map[string]string, config *Config) *Parsed {
	p := &Parsed{values: Values{origin: origin, config: config}}
	var present []*schemaSetting
	for name := range annotations {
		if d := s.byAnnotation[name]; d != nil {
			present = append(present, d)
		}
	}
	slices.SortFunc(present, func(a, b *schemaSetting) int { return a.place - b.place })
	p.enforce(annotations)
	errs := make([]error, len(present))
	for i, d := range present {
		e := &entry{origin: origin, scope: d.Scope, text: annotations[s.prefix+d.Annotation], counts: true}
		// ingress-nginx leaves spaces around true and false.
		if _, is := d.Default.(bool); !is {
			e.text = strings.TrimSpace(e.text)
		}
		if e.value, errs[i] = d.Parse(e.text); errs[i] != nil {
			e.value, e.counts = nil, false
		}
		if name, ok := e.value.(ObjectName); ok && name.Name != "" && d.Refers != NoObject {
			p.refers = append(p.refers, d)
		}
		if p.values.entries == nil {
			p.values.entries = make(map[string]*entry, len(present))
		}
		p.values.entries[d.Annotation] = e
	}
	// Whether an invalid value denies may depend on all values.
	for i, d := range present {
		if errs[i] != nil {
			code, message := badValue(p.values.entries[d.Annotation].text, errs[i])
			p.reject(d, code, message)
		}
	}
	if len(present) > 0 && !p.forbidden {
		p.imply(s)
		p.noteIdle(present)
	}
	for _, d := range config.denies {
		p.keysDeny = p.keysDeny || d.keyDenies(p.values)
	}
	return p
}

// reject reports that a value is not used.
func (p *Parsed) reject(d *schemaSetting, code finding.Code, message string) {
	e := p.values.entries[d.Annotation]
	problem := Problem{
		Ingress: p.values.origin, Field: p.values.field(d.SettingSpec), Code: code, Message: message, Effect: d.unused(), Rejected: true, feature: d.feature,
	}
	denies := d.OnInvalid == Deny || d.OnInvalid == DenyMissing && e.value != nil
	if problem.Denies = denies && (d.When == nil || d.When(p.values)); problem.Denies {
		problem.Effect = routesDeny
	}
	if denies && d.Denial != "" {
		problem.Effect = d.Denial
	}
	if d.Merge == MergeTogether && (d.Scope == ScopeHost || d.Scope == ScopeBackend) {
		_, asks := p.values.entries[d.leading]
		problem.unit, problem.Denies = asks, problem.Denies && asks
	}
	e.counts, e.denies = false, problem.Denies
	p.problems = append(p.problems, problem)
}

// enforce finds annotations that the administrator does not allow.
func (p *Parsed) enforce(annotations map[string]string) {
	maxRisk, words := riskLevel.Get(p.values), wordBlocklist.Get(p.values)
	schema := p.values.config.schema
	forbid := func(name, message string) {
		p.forbidden = true
		p.problems = append(p.problems, Problem{
			Ingress: p.values.origin, Field: name, Code: finding.NotAllowed, Message: message, Effect: routesDeny, Rejected: true, Denies: true,
		})
	}
	for name, text := range annotations {
		if !strings.HasPrefix(name, schema.prefix) {
			continue
		}
		if d := schema.byAnnotation[name]; d != nil && d.Risk > maxRisk {
			message := fmt.Sprintf("the risk is %s: must be at most %s (key %s)", d.Risk, maxRisk, riskLevel.Key)
			if d.Snippet && !allowSnippets.Get(p.values) {
				message += fmt.Sprintf(", and the key %s must be true", allowSnippets.Key)
			}
			forbid(name, message)
		}
		for _, word := range words {
			if strings.Contains(text, word) {
				forbid(name, fmt.Sprintf("the value must not contain %q (key %s)", finding.Cut(word, finding.MaxValue), wordBlocklist.Key))
				break
			}
		}
	}
}

// Attach looks up the objects that the values refer to, and reports those that don't
// exist or may not be read. For a forbidden Ingress it looks up none.
func (p *Parsed) Attach(objects Objects) *Parsed {
	if len(p.refers) == 0 || p.forbidden {
		return p
	}
	attached := *p
	attached.values.entries = maps.Clone(p.values.entries)
	attached.values.derive = objects.Derive
	attached.problems = slices.Clip(p.problems)
	for _, d := range p.refers {
		e := *attached.values.entries[d.Annotation]
		attached.values.entries[d.Annotation] = &e
		name := e.value.(ObjectName).in(e.origin.Namespace)
		if name.Namespace != e.origin.Namespace && !d.AnyNamespace && !crossNamespace.Get(p.values) {
			attached.reject(d, finding.InvalidValue, fmt.Sprintf(
				"%s is in another namespace: must be in %s while the key %s is false", name, e.origin.Namespace, crossNamespace.Key))
			continue
		}
		found := true
		switch d.Refers {
		case Secret:
			e.secret, found = objects.Secret(name)
		case ConfigMap:
			e.configMap, found = objects.ConfigMap(name)
		}
		if !found {
			e.secret, e.configMap = nil, nil
			if name.Namespace != e.origin.Namespace && d.AnyNamespace {
				attached.reject(d, finding.NotAllowed, Foreign(d.Refers, name))
			} else {
				attached.reject(d, finding.MissingObject, fmt.Sprintf("%s %s does not exist", d.Refers, name))
			}
		}
	}
	return &attached
}

// Foreign is the message, with finding.NotAllowed, about all that may be wrong with
// an object of another namespace. Different ones would reveal its content.
func Foreign(kind ObjectKind, name ObjectName) string {
	return fmt.Sprintf("%s %s is of another namespace: it does not exist, or its data can't be used", kind, name)
}

// Values are the values that are used: none of a forbidden Ingress.
func (p *Parsed) Values() Values {
	if p.forbidden {
		return Values{origin: p.values.origin, config: p.values.config}
	}
	return p.values
}

// Written are the values that the Ingress asks for, even if it is forbidden. They
// decide whether it is a canary, and explain shows them.
func (p *Parsed) Written() Values { return p.values }

// Uses reports whether the Ingress has a value of a setting that is used and not empty.
func (p *Parsed) Uses(s AnySetting) bool {
	e := p.values.entries[s.Spec().Annotation]
	return !p.forbidden && e != nil && e.counts && e.text != ""
}

// Forbidden reports whether the administrator does not allow the annotations.
func (p *Parsed) Forbidden() bool { return p.forbidden }

// Denied reports whether the routes of the Ingress answer 503.
func (p *Parsed) Denied() bool {
	return p.keysDeny || slices.ContainsFunc(p.problems, func(p Problem) bool { return p.Denies && !p.unit })
}

// Problems are those of the Ingress itself, and not of its hosts and backends.
func (p *Parsed) Problems() []Problem {
	return slices.DeleteFunc(slices.Clone(p.problems), func(p Problem) bool { return p.unit })
}

// ProblemsOf are those of one feature's settings, and what is forbidden.
func (p *Parsed) ProblemsOf(feature string) []Problem {
	return slices.DeleteFunc(p.Problems(), func(p Problem) bool { return p.feature != "" && p.feature != feature })
}

// References are the objects that the values refer to, even if they may not be read.
func (p *Parsed) References() []Reference {
	var list []Reference
	for _, d := range p.refers {
		if e := p.Values().entries[d.Annotation]; e != nil {
			list = append(list, Reference{d.Refers, e.value.(ObjectName).in(e.origin.Namespace)})
		}
	}
	return list
}
