package feature

import (
	"reflect"
	"slices"

	"github.com/headgate/headgate/internal/model"
)

// Merged is the settings of a host or a backend, merged from several Ingresses.
type Merged struct {
	Values
	// Problems are those of the unit, and not of an Ingress.
	Problems []Problem
	// Denied is set where the unit must answer 503 because of an invalid value.
	Denied    bool
	Conflicts []Conflict
}

// A Conflict is a value that is not used because another Ingress's is.
type Conflict struct {
	// Field is the annotation's whole name.
	Field         string
	Loser, Winner model.Origin
}

// Merge merges the settings of a scope as they are declared. The owners are all
// Ingresses that share the unit, the oldest first. Denial is the effect of a value
// that denies the unit.
func (s *Schema) Merge(scope Scope, config *Config, owners []*Parsed, denial string) Merged {
	m := Merged{Values: Values{config: config}}
	owners = slices.DeleteFunc(slices.Clone(owners), func(p *Parsed) bool { return p.forbidden })
	routed := slices.DeleteFunc(slices.Clone(owners), func(p *Parsed) bool { return p.idle })
	for _, d := range s.settings {
		switch {
		case d.Scope != scope || d.Annotation == "":
		case d.Merge == MergeTogether:
			m.merge(d, owners, denial)
		default:
			m.merge(d, routed, denial)
		}
	}
	return m
}

// merge adds one setting.
func (m *Merged) merge(d *schemaSetting, owners []*Parsed, denial string) {
	owner := d.owner(owners)
	if owner == nil {
		return
	}
	e := owner.values.entries[d.Annotation]
	if e != nil && d.Merge == MergeTogether && e.denies {
		// The feature may have its own answer.
		m.add(d, owner, &entry{origin: e.origin, scope: e.scope, text: e.text, denies: true})
	}
	if e != nil && e.counts {
		m.add(d, owner, e)
	}
	if e != nil && d.Merge != MergeOldest {
		m.Denied = m.Denied || e.denies
	}
	for _, p := range owner.problems {
		if p.unit && p.Field == owner.values.field(d.SettingSpec) {
			if p.Denies {
				p.Effect = denial
			}
			m.Problems = append(m.Problems, p)
		}
	}
	for _, p := range owners {
		other := p.values.entries[d.Annotation]
		asks := other != nil && other.counts && (d.Merge != MergeOldest || other.text != "")
		if p != owner && asks && !reflect.DeepEqual(d.Get(p.values), d.Get(owner.values)) {
			m.Conflicts = append(m.Conflicts, Conflict{p.values.field(d.SettingSpec), p.values.origin, owner.values.origin})
		}
	}
}

func (m *Merged) add(d *schemaSetting, owner *Parsed, e *entry) {
	if m.entries == nil {
		m.entries, m.derive = map[string]*entry{}, owner.values.derive
	}
	m.entries[d.Annotation] = e
}

// owner is the Ingress whose value of the setting is used, nil if there is none.
func (d *schemaSetting) owner(owners []*Parsed) *Parsed {
	for _, p := range owners {
		e := p.values.entries[d.Annotation]
		switch d.Merge {
		case MergeOwner:
			return p
		case MergeTogether:
			if p.values.entries[d.leading] != nil {
				return p
			}
		case MergeOldest:
			if e != nil && e.counts && e.text != "" {
				return p
			}
		}
	}
	return nil
}
