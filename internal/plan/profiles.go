package plan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/headgate/headgate/internal/directive"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// maxProfiles is how many profiles there may be, the default one among them:
// each is a few locations in nginx.conf, for good memory and time of every
// worker. See docs/decisions/0013.
const maxProfiles = 200

// profileBound bounds how many profiles there are: they cross hosts, and each
// Ingress can bring another one. Beyond maxProfiles those of the oldest
// Ingresses are kept, and each other route gets the nearest stricter one among
// them.
//
// The result depends on the hosts, and not on the order in which they were set.
type profileBound struct {
	directives directive.List
	first      model.Profile
	asked      map[model.Profile]*requesters
	hosts      map[string][]*requesters
	// changed is set when what is kept may be different since the last decide.
	changed bool
	// kept are in the order of their names; none while all are.
	kept []model.Profile
	// instead has what is served instead of those that are not kept.
	instead map[model.Profile]substitute
}

// requesters are the hosts that ask for a profile, each with the oldest Ingress
// that does so there, the zero Origin for the route that no Ingress asked for.
type requesters struct {
	profile model.Profile
	name    string
	byHost  map[string]model.Origin
}

// A substitute is a profile, or a denial if none is strict enough.
type substitute struct {
	profile model.Profile
	denied  bool
}

func newProfileBound(directives directive.List) profileBound {
	return profileBound{directives: directives, asked: map[model.Profile]*requesters{}, hosts: map[string][]*requesters{}}
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
		served, over := p.instead[r.Profile]
		if !over {
			continue
		}
		if len(fs) == 0 {
			h.Routes = slices.Clone(h.Routes)
		}
		fs = append(fs, p.tooMany(r, served))
		h.Routes[i].Denied = r.Denied || served.denied
		h.Routes[i].Profile = served.profile
	}
	return finding.Limit(fs)
}

func (p *profileBound) tooMany(r model.Route, served substitute) finding.Finding {
	f := finding.Finding{
		Object: "ingress/" + r.Origin.Namespace + "/" + r.Origin.Ingress, Field: "metadata.annotations", Code: finding.TooMany,
		Message: fmt.Sprintf("older Ingresses already have the maximum of %d different combinations of static settings", maxProfiles),
		Effect:  "using the nearest stricter combination: " + p.directives.Against(served.profile, r.Profile),
	}
	if served.denied {
		f.Effect = "none of these combinations is as strict: the paths answer 503"
	}
	return f
}

func (p *profileBound) remove(host string) {
	for _, a := range p.hosts[host] {
		delete(a.byHost, host)
		if len(a.byHost) == 0 {
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
			a = &requesters{r.Profile, r.Profile.Name(), map[string]model.Origin{}}
			p.asked[r.Profile] = a
			p.changed = true
		}
		oldest, noted := a.byHost[h.Name]
		if !noted {
			p.hosts[h.Name] = append(p.hosts[h.Name], a)
		}
		if !noted || r.Origin.CompareAge(oldest) < 0 {
			a.byHost[h.Name] = r.Origin
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
	before := p.instead
	p.decide()
	again := map[string]struct{}{}
	for profile, a := range p.asked {
		was, wasOver := before[profile]
		is, isOver := p.instead[profile]
		if was != is || wasOver != isOver {
			for host := range a.byHost {
				again[host] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(again))
}

func (p *profileBound) decide() {
	others := len(p.asked)
	if _, ok := p.asked[p.first]; ok {
		others--
	}
	if others < maxProfiles {
		p.kept, p.instead = nil, nil
		return
	}
	kept, known := p.oldest(), p.instead
	if !slices.Equal(kept, p.kept) {
		known = nil
	}
	p.kept, p.instead = kept, map[model.Profile]substitute{}
	isKept := map[model.Profile]bool{}
	for _, profile := range kept {
		isKept[profile] = true
	}
	for profile := range p.asked {
		if isKept[profile] {
			continue
		}
		served, ok := known[profile]
		if !ok {
			served = p.nearest(profile)
		}
		p.instead[profile] = served
	}
}

// oldest are the default profile, the strictest, without which some routes might
// find none, and those of the oldest Ingresses.
func (p *profileBound) oldest() []model.Profile {
	type candidate struct {
		*requesters
		oldest model.Origin
	}
	list := make([]candidate, 0, len(p.asked))
	for _, a := range p.asked {
		list = append(list, candidate{a, slices.MinFunc(slices.Collect(maps.Values(a.byHost)), model.Origin.CompareAge)})
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(a.oldest.CompareAge(b.oldest), cmp.Compare(a.name, b.name))
	})
	kept := map[string]model.Profile{p.first.Name(): p.first}
	strictest := p.directives.Strictest(p.first)
	kept[strictest.Name()] = strictest
	for _, c := range list {
		if len(kept) == maxProfiles {
			break
		}
		kept[c.name] = c.profile
	}
	sorted := make([]model.Profile, 0, len(kept))
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		sorted = append(sorted, kept[name])
	}
	return sorted
}

// nearest is the profile among those kept that comes closest to the one asked
// for and allows nothing more: of two that are as close, the first.
func (p *profileBound) nearest(asked model.Profile) substitute {
	best := substitute{profile: p.first, denied: true}
	least := int64(math.MaxInt64)
	for _, candidate := range p.kept {
		if !p.directives.StandsIn(candidate, asked) {
			continue
		}
		if distance := p.directives.Distance(candidate, asked); distance < least {
			best, least = substitute{profile: candidate}, distance
		}
	}
	return best
}
