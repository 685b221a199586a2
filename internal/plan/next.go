package plan

import (
	"bytes"
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
	Files map[string][]byte
}

// needs is the generation that has all of the profiles; it is not known if
// NGINX lacks one of them.
func (s Static) needs(profiles []model.Profile) (generation int, known bool) {
	for _, p := range profiles {
		since, ok := s.since[p]
		if !ok {
			return 0, false
		}
		generation = max(generation, since)
	}
	return generation, true
}

// Next renders the configuration that d asks for, coming from current. If its
// bytes are those of current it is no other configuration, and the reason is
// empty; else the reason says in words why NGINX is to be reloaded.
//
// What nobody uses any more costs no reload: it stays as long as nothing else
// asks for one. A reload, when it must be, drops profiles that neither d nor
// the applied units name, and the dictionaries before the current ones.
// grown, if not nil, are larger dictionaries to go over to.
func (d *Desired) Next(env Environment, current Static, grown *Dictionaries) (next Static, reason string, err error) {
	kept := d.wantedProfiles()
	for p := range current.since {
		kept[p] = struct{}{}
	}
	same, err := d.render(env, current, kept, current.Dictionaries)
	if err != nil {
		return Static{}, "", err
	}
	if grown == nil && bytes.Equal(same.Files[NginxConf], current.Files[NginxConf]) {
		return current, "", nil
	}

	wanted := d.wantedProfiles()
	for _, profiles := range d.appliedProfiles {
		for _, p := range profiles {
			wanted[p] = struct{}{}
		}
	}
	dictionaries := current.Dictionaries
	dictionaries.Previous = nil
	if grown != nil {
		dictionaries = *grown
	}
	next, err = d.render(env, current, wanted, dictionaries)
	if err != nil {
		return Static{}, "", err
	}
	return next, why(current, next), nil
}

func (d *Desired) render(env Environment, current Static, profiles map[model.Profile]struct{}, dictionaries Dictionaries) (Static, error) {
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
	others := map[model.Profile]struct{}{}
	for p := range profiles {
		if p != next.Default {
			others[p] = struct{}{}
		}
	}
	next.Profiles = sortedProfiles(others)
	var err error
	next.Files, err = Render(env, d.globals, next.Profiles, dictionaries)
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
