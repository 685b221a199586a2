package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
)

// maxProfiles is how many profiles there may be, the default one among them:
// each is a few locations in nginx.conf, for good memory and time of every
// worker. See docs/decisions/0013.
const maxProfiles = 200

// profileBound bounds how many profiles there are: they cross hosts, and each
// Ingress can bring another one. Beyond maxProfiles namespaces take turns, each
// with the profiles of its oldest Ingresses first, and each other route gets the
// nearest stricter one among those that are kept. So a namespace gets more than an
// equal share only while the others ask for less.
//
// The result depends on the hosts, and not on the order in which they were set.
type profileBound struct {
	directives directive.List
	first      model.Profile
	asked      map[model.Profile]*requesters
	hosts      map[string][]askedBy
	// changed is set when what is kept may be different since the last decide.
	changed bool
	// kept are in the order of their names; none while all are.
	kept []model.Profile
	// instead has what is served instead of those that are not kept.
	instead map[model.Profile]substitute
	// zones are those of nginx.conf, and closed are the profiles that name others, with what
	// is wrong. They are not kept, and routes with them are denied.
	zones  directive.Zones
	closed map[model.Profile]string
}

// requesters are the hosts that ask for a profile, each with the oldest Ingress of each
// namespace that does so there, the zero Origin for the route that no Ingress asked for.
type requesters struct {
	profile model.Profile
	name    string
	oldest  map[requester]model.Origin
}

type requester struct{ host, namespace string }

// askedBy is a profile that a namespace asks for at a host.
type askedBy struct {
	*requesters
	namespace string
}

// A substitute is a profile, or a denial if none is strict enough.
type substitute struct {
	profile model.Profile
	denied  bool
}

func newProfileBound(directives directive.List) profileBound {
	return profileBound{directives: directives, asked: map[model.Profile]*requesters{}, hosts: map[string][]askedBy{}}
}

// setDefault sets the profile that is always kept.
func (p *profileBound) setDefault(first model.Profile) {
	p.changed = p.changed || first != p.first
	p.first = first
}

// bound replaces the profiles of a host by what was decided last.
func (p *profileBound) bound(h *model.Host) []finding.Finding {
	var fs []finding.Finding
	for i, r := range h.Routes {
		lacks, closed := p.closed[r.Profile]
		served, over := p.instead[r.Profile]
		if !over && !closed {
			continue
		}
		if len(fs) == 0 {
			h.Routes = slices.Clone(h.Routes)
		}
		if closed {
			served = substitute{profile: p.first, denied: true}
			fs = append(fs, lacksZone(r, lacks))
		} else {
			fs = append(fs, p.tooMany(r, served))
		}
		h.Routes[i].Denied = r.Denied || served.denied
		h.Routes[i].Profile = served.profile
	}
	return finding.Limit(fs)
}

func (p *profileBound) tooMany(r model.Route, served substitute) finding.Finding {
	f := finding.Finding{
		Object: "ingress/" + r.Origin.Namespace + "/" + r.Origin.Ingress, Field: "metadata.annotations", Code: finding.TooMany,
		Message: fmt.Sprintf("there are more than %d different combinations of static settings, and older Ingresses already have this namespace's share of them", maxProfiles),
		Effect:  "using the nearest stricter combination: " + p.directives.Against(served.profile, r.Profile),
	}
	if values := p.exceeded(r.Profile); values != "" {
		f.Message = "there are more than " + values + ", and older Ingresses already have this namespace's share of them"
	}
	if served.denied {
		f.Effect = "none of these combinations is as strict: the paths answer 503"
	}
	return f
}

func (p *profileBound) remove(host string) {
	for _, a := range p.hosts[host] {
		delete(a.oldest, requester{host, a.namespace})
		if len(a.oldest) == 0 {
			delete(p.asked, a.profile)
			p.changed = true
		}
		// Beyond the maximum, the Ingresses decide which profiles are kept.
		p.changed = p.changed || p.kept != nil
	}
	delete(p.hosts, host)
}

func (p *profileBound) note(h model.Host) {
	p.remove(h.Name)
	for _, r := range h.Routes {
		a := p.asked[r.Profile]
		if a == nil {
			a = &requesters{r.Profile, r.Profile.Name(), map[requester]model.Origin{}}
			p.asked[r.Profile] = a
			p.changed = true
		}
		by := requester{h.Name, r.Origin.Namespace}
		oldest, noted := a.oldest[by]
		if !noted {
			p.hosts[h.Name] = append(p.hosts[h.Name], askedBy{a, by.namespace})
		}
		if !noted || r.Origin.CompareAge(oldest) < 0 {
			a.oldest[by] = r.Origin
		}
	}
	p.changed = p.changed || p.kept != nil
}

// rebound decides again, and returns the hosts that get other profiles.
func (p *profileBound) rebound() []string {
	if !p.changed {
		return nil
	}
	p.changed = false
	before, closedBefore := p.instead, p.closed
	p.decide()
	again := map[string]struct{}{}
	for profile, a := range p.asked {
		was, wasOver := before[profile]
		is, isOver := p.instead[profile]
		if was != is || wasOver != isOver || closedBefore[profile] != p.closed[profile] {
			for by := range a.oldest {
				again[by.host] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(again))
}

func (p *profileBound) decide() {
	always := p.always()
	p.closed = p.lackZones()
	others := len(p.asked) - len(p.closed)
	for _, profile := range always {
		if _, ok := p.asked[profile]; ok {
			others--
		}
	}
	if others+len(always) <= maxProfiles && p.valuesFit() {
		p.kept, p.instead = nil, nil
		return
	}
	kept, known := p.shares(), p.instead
	if !slices.Equal(kept, p.kept) {
		known = nil
	}
	p.kept, p.instead = kept, map[model.Profile]substitute{}
	isKept := map[model.Profile]bool{}
	for _, profile := range kept {
		isKept[profile] = true
	}
	among := newSearch(p.directives, kept, p.first)
	for profile := range p.asked {
		if _, closed := p.closed[profile]; closed || isKept[profile] {
			continue
		}
		served, ok := known[profile]
		if !ok {
			served = among.nearest(profile)
		}
		p.instead[profile] = served
	}
}

// always are the default profile and the strictest, without which some routes might
// find none that may stand in for theirs.
func (p *profileBound) always() []model.Profile {
	strictest := p.directives.Strictest(p.first)
	if strictest == p.first {
		return []model.Profile{p.first}
	}
	return []model.Profile{p.first, strictest}
}

// A candidate is a profile with the oldest Ingress of a namespace that asks for it.
type candidate struct {
	*requesters
	by model.Origin
}

func (c candidate) compareAge(other candidate) int {
	return cmp.Or(c.by.CompareAge(other.by), cmp.Compare(c.name, other.name))
}

// shares are the profiles that are always there, and those that namespaces choose in
// turns. The namespace with the oldest Ingress begins.
func (p *profileBound) shares() []model.Profile {
	kept, values := map[string]model.Profile{}, newValueBound(p.directives)
	for _, profile := range p.always() {
		kept[profile.Name()] = profile
		values.admit(profile)
	}
	turns := p.byNamespace()
	for len(turns) > 0 && len(kept) < maxProfiles {
		for i, left := range turns {
			// What another namespace has as well costs no turn, and neither does what can't be
			// kept.
			for len(left) > 0 && (has(kept, left[0].name) || !values.fits(left[0].profile)) {
				left = left[1:]
			}
			if len(left) > 0 && len(kept) < maxProfiles {
				kept[left[0].name] = left[0].profile
				values.admit(left[0].profile)
				left = left[1:]
			}
			turns[i] = left
		}
		turns = slices.DeleteFunc(turns, func(left []candidate) bool { return len(left) == 0 })
	}
	sorted := make([]model.Profile, 0, len(kept))
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		sorted = append(sorted, kept[name])
	}
	return sorted
}

func has(kept map[string]model.Profile, name string) bool {
	_, is := kept[name]
	return is
}

// byNamespace are the profiles that each namespace asks for, the oldest first, and the
// namespace with the oldest of all first.
func (p *profileBound) byNamespace() [][]candidate {
	oldest := map[string]map[*requesters]model.Origin{}
	for _, a := range p.asked {
		if _, closed := p.closed[a.profile]; closed {
			continue
		}
		for by, origin := range a.oldest {
			of := oldest[by.namespace]
			if of == nil {
				of = map[*requesters]model.Origin{}
				oldest[by.namespace] = of
			}
			if known, ok := of[a]; !ok || origin.CompareAge(known) < 0 {
				of[a] = origin
			}
		}
	}
	lists := make([][]candidate, 0, len(oldest))
	for _, of := range oldest {
		list := make([]candidate, 0, len(of))
		for a, origin := range of {
			list = append(list, candidate{a, origin})
		}
		slices.SortFunc(list, candidate.compareAge)
		lists = append(lists, list)
	}
	slices.SortFunc(lists, func(a, b []candidate) int { return a[0].compareAge(b[0]) })
	return lists
}

// A search is for the profiles among the known ones that come closest to others.
type search struct {
	directives directive.List
	known      []model.Profile
	values     []directive.Values
	// ofDenied is the profile of denied routes.
	ofDenied model.Profile
}

func newSearch(directives directive.List, known []model.Profile, ofDenied model.Profile) *search {
	s := &search{directives: directives, known: known, ofDenied: ofDenied}
	for _, p := range known {
		s.values = append(s.values, directives.Values(p))
	}
	return s
}

// nearest is the known profile that comes closest to the one asked for and allows nothing
// more: of two that are as close, the first. Without one it is a denial.
func (s *search) nearest(asked model.Profile) substitute {
	best := substitute{profile: s.ofDenied, denied: true}
	least := int64(math.MaxInt64)
	wanted := s.directives.Values(asked)
	for i, candidate := range s.values {
		if !candidate.MayReplace(wanted) {
			continue
		}
		if distance := candidate.Distance(wanted); distance < least {
			best, least = substitute{profile: s.known[i]}, distance
		}
	}
	return best
}
