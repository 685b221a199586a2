package feature

import "github.com/headgate/headgate/internal/finding"

// A Need is another setting without which a setting does nothing. Its zero value is none.
type Need struct {
	// Setting is the one that must be there, and What how it is written.
	Setting AnySetting
	What    string
	// Met reports whether it is there.
	Met func(Values) bool
}

// NeedsTrue is the need of a setting that must be true.
func NeedsTrue(s Setting[bool]) Need { return Need{s, s.Annotation + `: "true"`, s.Get} }

// Needs is the need of a setting that must have a value; met reports whether it does.
func Needs(s AnySetting, met func(Values) bool) Need { return Need{s, s.Spec().Annotation, met} }

// missing says why a setting does nothing, since what it needs is not there; empty if it is.
func (n Need) missing(v Values) string {
	if n.Met == nil || n.Met(v) {
		return ""
	}
	return "it acts only beside " + n.What
}

// noteIdle reports annotations that do nothing without another one. Where that is there and says
// that it is off, the author knows, and where it is invalid, that is reported.
func (p *Parsed) noteIdle(present []*schemaSetting) {
	for _, d := range present {
		e, missing := p.values.entries[d.Annotation], d.Needs.missing(p.values)
		if e.counts && e.text != "" && missing != "" && !p.values.IsSet(d.Needs.Setting) {
			p.problems = append(p.problems, Problem{
				Ingress: p.values.origin, Field: p.values.field(d.SettingSpec), Code: finding.NoEffect, Message: missing, Effect: "it has no effect", feature: d.feature,
			})
		}
	}
}
