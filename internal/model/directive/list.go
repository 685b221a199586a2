package directive

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

// A List is all directives of profiles, in the order in which they are printed.
type List []Directive

// Merge puts lists together. Two directives of one name are a programming error.
func Merge(lists ...List) List {
	all := slices.Concat(lists...)
	for i, d := range all {
		if slices.ContainsFunc(all[:i], func(other Directive) bool { return other.Name == d.Name }) {
			panic("directive: " + d.Name + " is declared twice")
		}
	}
	return all
}

// Identity names how a profile makes TLS connections: only profiles with equal values of all
// directives with TLS have equal ones. It is empty if none has a value.
func (l List) Identity(p model.Profile) string {
	if !p.TLS {
		return ""
	}
	sum, empty := sha256.New(), true
	for _, d := range l {
		if v := p.Get(d.Name); d.TLS && (v.Number != 0 || v.Text != "") {
			fmt.Fprintf(sum, "%s %d %s\n", v.Name, v.Number, v.Text)
			empty = false
		}
	}
	if empty {
		return ""
	}
	// Long: tenants choose texts, and must find no two with one identity.
	return hex.EncodeToString(sum.Sum(nil)[:20])
}

// Catches reports whether the profile has statuses of backends that go to the phase
// error_page.
func (l List) Catches(p model.Profile) bool {
	return slices.ContainsFunc(l, func(d Directive) bool { return d.Kind == Statuses && p.Get(d.Name).Text != "" })
}

// Undeclared is a value of the profile that no directive declares, empty if all
// are declared.
func (l List) Undeclared(p model.Profile) string {
	for _, v := range p.Values() {
		if !slices.ContainsFunc(l, func(d Directive) bool { return d.Name == v.Name }) {
			return v.Name
		}
	}
	return ""
}

// Strictest is p with the strictest value of all that have one.
func (l List) Strictest(p model.Profile) model.Profile {
	p.Access = true
	for _, d := range l {
		if d.Strictest != nil {
			p = p.With(d.To(*d.Strictest))
		}
	}
	return p
}

// Values are those of a profile, read once to compare it with many others.
type Values struct {
	list    List
	profile model.Profile
	// of has a value for each directive of the list, and others counts the rest.
	of     []model.ProfileValue
	others int
}

// Values reads the values of p.
func (l List) Values(p model.Profile) Values {
	known := valuesOf(p)
	v := Values{list: l, profile: p, of: make([]model.ProfileValue, len(l)), others: len(known)}
	for i, d := range l {
		value, has := known[d.Name]
		if v.of[i] = value; has {
			v.others--
		}
	}
	return v
}

// MayReplace reports whether a profile may replace the one asked for: not if either has a
// value that is not declared.
func (v Values) MayReplace(asked Values) bool {
	if v.profile.Protocol != asked.profile.Protocol || v.profile.TLS != asked.profile.TLS || v.profile.AsClient != asked.profile.AsClient || asked.profile.Access && !v.profile.Access {
		return false
	}
	for i, d := range v.list {
		if !d.standsIn(v.of[i], asked.of[i]) {
			return false
		}
	}
	return v.others == 0 && asked.others == 0
}

// Distance is the difference to the profile asked for: for sizes, how often one must be
// doubled to become the other. Of the profiles that may replace it, only the one asked
// for itself has the distance 0.
func (v Values) Distance(asked Values) int64 {
	var distance int64
	if v.profile.Access != asked.profile.Access {
		distance = toggled
	}
	for i, d := range v.list {
		distance += d.distance(v.of[i], asked.of[i])
	}
	return distance
}

// Against describes the differences between p and asked.
func (l List) Against(p, asked model.Profile) string {
	var list []string
	is, wanted := valuesOf(p), valuesOf(asked)
	for _, d := range l {
		if a, b := is[d.Name], wanted[d.Name]; a != b {
			list = append(list, fmt.Sprintf("%s %s, not %s", strings.ReplaceAll(d.Name, "_", " "), d.text(a), d.text(b)))
		}
	}
	if p.Access != asked.Access {
		list = append(list, fmt.Sprintf("access phase %v, not %v", p.Access, asked.Access))
	}
	return strings.Join(list, "; ")
}

func valuesOf(p model.Profile) map[string]model.ProfileValue {
	values := map[string]model.ProfileValue{}
	for _, v := range p.Values() {
		values[v.Name] = v
	}
	return values
}
