package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

// Static is a state of NGINX's configuration: what it was rendered from as far
// as the next one depends on it, and its bytes.
type Static struct {
	// Generation counts configurations. The one that NGINX starts with is 1.
	Generation int
	// Tried is the highest generation that NGINX was ever told of, if it did
	// not take it: its number is not given again.
	Tried int
	// Workers is the number of worker processes.
	Workers      int
	Dictionaries Dictionaries
	Default      model.Profile
	// Profiles are those with a location of their own, sorted by name.
	Profiles []model.Profile
	// since says which generation brought a profile.
	since map[model.Profile]int
	// hello is the generation that brought the phase of TLS policies, 0 if it
	// is not there.
	hello int
	Files map[string][]byte
	// from is an input that gives the Files.
	from input
}

// A demand is what a host wants of NGINX's configuration.
type demand struct {
	profiles []model.Profile
	// hello is set where the host has a TLS policy.
	hello bool
}

// needs is the generation that has all that is wanted; it is not known if NGINX
// lacks any of it.
func (s Static) needs(d demand) (generation int, known bool) {
	if d.hello {
		if generation = s.hello; generation == 0 {
			return 0, false
		}
	}
	for _, p := range d.profiles {
		since, ok := s.since[p]
		if !ok {
			return 0, false
		}
		generation = max(generation, since)
	}
	return generation, true
}

// Next returns the configuration that d asks for, coming from current. If its
// files are those of current, the reason is empty, and next is current, which
// knows by now that it serves what d asks for: pass it the next time. Else the
// reason says in words why NGINX is to be reloaded.
//
// What nothing uses any more costs no reload: it stays as long as nothing else
// asks for one. A reload, when it must be, drops profiles and the phase of TLS
// policies where neither d nor the applied units name them, and the dictionaries before the current ones.
// grown, if not nil, are larger dictionaries to go over to.
func (d *Desired) Next(env Environment, current Static, grown *Dictionaries) (next Static, reason string, err error) {
	hello := d.hellos > 0 || d.globals.Process.TLS.RejectUnknown
	if grown == nil && current.serves(d, env, hello) {
		return current, "", nil
	}
	kept := d.wantedProfiles()
	for p := range current.since {
		kept[p] = struct{}{}
	}
	same, err := d.render(env, current, kept, hello || current.hello > 0, current.Dictionaries)
	if err != nil {
		return Static{}, "", err
	}
	if grown == nil && SameFiles(same.Files, current.Files) {
		current.from = same.from
		return current, "", nil
	}

	wanted := d.wantedProfiles()
	for _, applied := range d.appliedDemands {
		for _, p := range applied.profiles {
			wanted[p] = struct{}{}
		}
		hello = hello || applied.hello
	}
	dictionaries := current.Dictionaries
	dictionaries.Previous = nil
	if grown != nil {
		dictionaries = *grown
	}
	next, err = d.render(env, current, wanted, hello, dictionaries)
	if err != nil {
		return Static{}, "", err
	}
	return next, why(current, next), nil
}

// serves reports whether the configuration has all that d asks for, without
// rendering it: whether rendering would give the same bytes because it would
// be given the same input.
func (s Static) serves(d *Desired, env Environment, hello bool) bool {
	if s.Files == nil || hello && s.hello == 0 {
		return false
	}
	for p := range d.profileUses {
		if _, ok := s.since[p]; !ok {
			return false
		}
	}
	_, ok := s.since[d.globals.Default]
	return ok && s.from.sameSettings(input{environment: env, globals: d.globals})
}

func (d *Desired) render(env Environment, current Static, profiles map[model.Profile]struct{}, hello bool, dictionaries Dictionaries) (Static, error) {
	next := Static{
		Generation:   max(current.Generation, current.Tried) + 1,
		Workers:      env.WorkerProcesses(d.globals.Process),
		Dictionaries: dictionaries,
		Default:      d.globals.Default,
		since:        map[model.Profile]int{},
	}
	for p := range profiles {
		next.since[p] = next.Generation
		if since, ok := current.since[p]; ok {
			next.since[p] = since
		}
	}
	if hello {
		next.hello = cmp.Or(current.hello, next.Generation)
	}
	others := map[model.Profile]struct{}{}
	for p := range profiles {
		if p != next.Default {
			others[p] = struct{}{}
		}
	}
	next.Profiles = sortedProfiles(others)
	next.from = input{environment: env, globals: d.globals, profiles: next.Profiles, hello: hello, dictionaries: dictionaries}
	var err error
	next.Files, err = d.rendered.files(next.from)
	return next, err
}

// why tells two configurations apart in words.
func why(current, next Static) string {
	if current.Files == nil {
		return "start"
	}
	var reasons []string
	for _, p := range append(slices.Clone(next.Profiles), next.Default) {
		if _, ok := current.since[p]; !ok {
			reasons = append(reasons, fmt.Sprintf("profile %s is new", p.Name()))
		}
	}
	if next.hello > current.hello {
		reasons = append(reasons, "TLS handshakes differ by host")
	}
	if next.Default != current.Default {
		reasons = append(reasons, "the ConfigMap has another default profile")
	}
	if next.Dictionaries.Number != current.Dictionaries.Number {
		reasons = append(reasons, "the shared memory grows")
	}
	if len(reasons) == 0 {
		reasons = append(reasons, "settings of the process changed")
	}
	return strings.Join(reasons, ", ")
}
