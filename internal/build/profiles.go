package build

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// mostProfiles is how many profiles there may be, the default one among them:
// each is a few locations in nginx.conf, for good memory and time of every
// worker. See docs/decisions/0013.
const mostProfiles = 200

// Profiles bounds how many profiles there are: they cross hosts, and whoever
// may write an Ingress makes them. Beyond mostProfiles those of the oldest
// Ingresses are kept, and each other route gets the nearest stricter one among
// them.
//
// What is kept follows from what all hosts ask for, and not from when they came
// to ask. A Profiles must not be used by two goroutines at once.
type Profiles struct {
	first model.Profile
	asked map[model.Profile]*askers
	hosts map[string][]*askers
	// changed is set when what is kept may be different since the last Settle.
	changed bool
	// kept are in the order of their names; none while all are.
	kept []model.Profile
	// instead has what is served in the place of those that are not kept.
	instead map[model.Profile]substitute
}

// askers are the hosts that ask for a profile, each with the oldest Ingress
// that does so there, nil for the route that no Ingress asked for.
type askers struct {
	profile model.Profile
	name    string
	byHost  map[string]*networkingv1.Ingress
}

// A substitute is a profile, or a denial where none is strict enough.
type substitute struct {
	profile model.Profile
	denied  bool
}

// NewProfiles has no hosts.
func NewProfiles() *Profiles {
	return &Profiles{asked: map[model.Profile]*askers{}, hosts: map[string][]*askers{}}
}

// SetDefault says which profile is always there.
func (p *Profiles) SetDefault(first model.Profile) {
	p.changed = p.changed || first != p.first
	p.first = first
}

// Bound notes what a host asks for, as it was built from v, and serves it.
func (p *Profiles) Bound(h *model.Host, v View) []finding.Finding {
	p.Remove(h.Name)
	p.note(h, v)
	return p.Serve(h)
}

// Serve puts what the last Settle decided in the place of what a host asks for,
// and notes nothing. A nil Profiles serves what is asked for.
func (p *Profiles) Serve(h *model.Host) []finding.Finding {
	if p == nil || len(p.instead) == 0 {
		return nil
	}
	var fs []finding.Finding
	for i := range h.Routes {
		r := &h.Routes[i]
		served, over := p.instead[r.Profile]
		if !over {
			continue
		}
		fs = append(fs, tooMany(r, served))
		r.Denied = r.Denied || served.denied
		r.Profile = served.profile
	}
	return finding.Limit(fs)
}

func tooMany(r *model.Route, served substitute) finding.Finding {
	f := finding.Finding{
		Object: "ingress/" + r.Origin.Namespace + "/" + r.Origin.Ingress, Field: "metadata.annotations", Code: finding.TooMany,
		Message: fmt.Sprintf("older Ingresses have %d combinations of settings that NGINX only takes by a reload, and this is another one", mostProfiles),
		Effect:  "the nearest stricter one is served: " + served.profile.Against(r.Profile),
	}
	if served.denied {
		f.Effect = "none of theirs is as strict: its paths answer 503"
	}
	return f
}

// Remove forgets a host.
func (p *Profiles) Remove(host string) {
	for _, a := range p.hosts[host] {
		delete(a.byHost, host)
		if len(a.byHost) == 0 {
			delete(p.asked, a.profile)
			p.changed = true
		}
		// Among too many it counts who asks.
		p.changed = p.changed || p.kept != nil
	}
	delete(p.hosts, host)
}

func (p *Profiles) note(h *model.Host, v View) {
	byName := map[model.Origin]*networkingv1.Ingress{}
	for _, ing := range v.Ingresses(h.Name) {
		byName[origin(ing)] = ing
	}
	for _, r := range h.Routes {
		a := p.asked[r.Profile]
		if a == nil {
			a = &askers{r.Profile, r.Profile.Name(), map[string]*networkingv1.Ingress{}}
			p.asked[r.Profile] = a
			p.changed = true
		}
		ing := byName[r.Origin]
		oldest, noted := a.byHost[h.Name]
		if !noted {
			p.hosts[h.Name] = append(p.hosts[h.Name], a)
		}
		if !noted || olderAsker(ing, oldest) < 0 {
			a.byHost[h.Name] = ing
		}
	}
	p.changed = p.changed || p.kept != nil
}

// olderAsker orders by who keeps its profile.
func olderAsker(a, b *networkingv1.Ingress) int {
	switch {
	case a == b:
		return 0
	case a == nil:
		return -1
	case b == nil:
		return 1
	}
	return compareAge(a, b)
}

// Settle decides anew, once hosts were built and bounded, and returns those of
// them to build again, since another profile is to be served to a route of
// theirs. Built again, they ask for what they asked for, and nothing is left to
// decide.
func (p *Profiles) Settle() []string {
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

func (p *Profiles) decide() {
	others := len(p.asked)
	if _, ok := p.asked[p.first]; ok {
		others--
	}
	if others < mostProfiles {
		p.kept, p.instead = nil, nil
		return
	}
	kept, known := p.eldest(), p.instead
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

// eldest are the default profile, the strictest, without which some routes might
// find none, and those of the oldest Ingresses.
func (p *Profiles) eldest() []model.Profile {
	type candidate struct {
		*askers
		oldest *networkingv1.Ingress
	}
	list := make([]candidate, 0, len(p.asked))
	for _, a := range p.asked {
		list = append(list, candidate{a, slices.MinFunc(slices.Collect(maps.Values(a.byHost)), olderAsker)})
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(olderAsker(a.oldest, b.oldest), cmp.Compare(a.name, b.name))
	})
	kept := map[string]model.Profile{p.first.Name(): p.first}
	kept[p.first.Strictest().Name()] = p.first.Strictest()
	for _, c := range list {
		if len(kept) == mostProfiles {
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
func (p *Profiles) nearest(asked model.Profile) substitute {
	best := substitute{profile: p.first, denied: true}
	least := int64(math.MaxInt64)
	for _, candidate := range p.kept {
		if !candidate.Within(asked) {
			continue
		}
		if distance := candidate.Distance(asked); distance < least {
			best, least = substitute{profile: candidate}, distance
		}
	}
	return best
}
