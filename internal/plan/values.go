package plan

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/directive"
	"github.com/headgate/headgate/internal/model"
)

// A valueBound counts the different values of directives that have a Most.
type valueBound struct {
	directives directive.List
	values     map[string]map[model.ProfileValue]struct{}
}

func newValueBound(directives directive.List) valueBound {
	bounded := slices.DeleteFunc(slices.Clone(directives), func(d directive.Directive) bool { return d.Most == 0 })
	return valueBound{bounded, map[string]map[model.ProfileValue]struct{}{}}
}

// exceeded is the first directive with too many values if the profile is admitted, nil for
// none.
func (b valueBound) exceeded(p model.Profile) *directive.Directive {
	for i, d := range b.directives {
		v, known := p.Get(d.Name), b.values[d.Name]
		if _, is := known[v]; !is && v != (model.ProfileValue{Name: d.Name}) && len(known) >= d.Most {
			return &b.directives[i]
		}
	}
	return nil
}

func (b valueBound) fits(p model.Profile) bool { return b.exceeded(p) == nil }

func (b valueBound) admit(p model.Profile) {
	for _, d := range b.directives {
		v := p.Get(d.Name)
		if v == (model.ProfileValue{Name: d.Name}) {
			continue
		}
		if b.values[d.Name] == nil {
			b.values[d.Name] = map[model.ProfileValue]struct{}{}
		}
		b.values[d.Name][v] = struct{}{}
	}
}

// valuesFit reports whether the values of all profiles that are asked for fit.
func (p *profileBound) valuesFit() bool {
	values := newValueBound(p.directives)
	if len(values.directives) == 0 {
		return true
	}
	for _, profile := range p.always() {
		values.admit(profile)
	}
	for profile := range p.asked {
		if !values.fits(profile) {
			return false
		}
		values.admit(profile)
	}
	return true
}

// exceeded is the directive, and its bound, because of which a profile is not kept; empty if
// there is another reason.
func (p *profileBound) exceeded(asked model.Profile) (name string, most int) {
	values := newValueBound(p.directives)
	for _, kept := range p.kept {
		values.admit(kept)
	}
	if d := values.exceeded(asked); d != nil {
		return strings.ReplaceAll(d.Name, "_", " "), d.Most
	}
	return "", 0
}
