package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
)

// A valueBound counts the different values of directives that have a Most, and the profiles with
// them.
type valueBound struct {
	directives directive.List
	values     map[string]map[model.ProfileValue]map[model.Profile]struct{}
}

func newValueBound(directives directive.List) valueBound {
	bounded := slices.DeleteFunc(slices.Clone(directives), func(d directive.Directive) bool { return d.Most == 0 && d.InMost == 0 })
	return valueBound{bounded, map[string]map[model.ProfileValue]map[model.Profile]struct{}{}}
}

// exceeded says which bound is exceeded if the profile is admitted, empty for none.
func (b valueBound) exceeded(p model.Profile) string {
	for _, d := range b.directives {
		v, known := p.Get(d.Name), b.values[d.Name]
		if v == (model.ProfileValue{Name: d.Name}) {
			continue
		}
		profiles, is := known[v]
		if _, admitted := profiles[p]; admitted {
			continue
		}
		name := strings.ReplaceAll(d.Name, "_", " ")
		if d.Most > 0 && !is && len(known) >= d.Most {
			return fmt.Sprintf("%d different values of %s", d.Most, name)
		}
		all := 0
		for _, profiles := range known {
			all += len(profiles)
		}
		if d.InMost > 0 && all >= d.InMost {
			return fmt.Sprintf("%d different combinations of static settings with %s", d.InMost, name)
		}
	}
	return ""
}

func (b valueBound) fits(p model.Profile) bool { return b.exceeded(p) == "" }

func (b valueBound) admit(p model.Profile) {
	for _, d := range b.directives {
		v := p.Get(d.Name)
		if v == (model.ProfileValue{Name: d.Name}) {
			continue
		}
		if b.values[d.Name] == nil {
			b.values[d.Name] = map[model.ProfileValue]map[model.Profile]struct{}{}
		}
		if b.values[d.Name][v] == nil {
			b.values[d.Name][v] = map[model.Profile]struct{}{}
		}
		b.values[d.Name][v][p] = struct{}{}
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
		if _, closed := p.closed[profile]; closed {
			continue
		}
		if !values.fits(profile) {
			return false
		}
		values.admit(profile)
	}
	return true
}

// exceeded says which bound of values a profile exceeds that is not kept; empty if there is
// another reason.
func (p *profileBound) exceeded(asked model.Profile) string {
	values := newValueBound(p.directives)
	for _, kept := range p.kept {
		values.admit(kept)
	}
	return values.exceeded(asked)
}
