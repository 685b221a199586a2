package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/plan/nginxconf"
)

// Static is a state of NGINX's configuration: what it was rendered from as far
// as the next one depends on it, and its bytes.
type Static struct {
	// Generation counts configurations. The one that NGINX starts with is 1.
	Generation int
	// Tried is the highest generation that NGINX rejected, 0 for none. Its number is
	// not used again.
	Tried int
	// Workers is the number of worker processes.
	Workers      int
	Dictionaries nginxconf.Dictionaries
	Default      model.Profile
	// Profiles are those with a location of their own, sorted by name.
	Profiles []model.Profile
	// since has the generation that added each profile.
	since map[model.Profile]int
	// clientHello is the generation that added the phase of TLS policies, 0 if there is
	// none.
	clientHello int
	Files       map[string][]byte
	// serial numbers planned configurations, also those of one generation.
	serial int
	// from is an input that gives the Files.
	from input
}

// Globals are those that it was rendered from.
func (s Static) Globals() model.Globals { return s.from.globals }

// requirements are what a host needs in NGINX's configuration.
type requirements struct {
	profiles []model.Profile
	// clientHello is set where the host has a TLS policy.
	clientHello bool
}

func requirementsOf(h model.Host) requirements {
	r := requirements{clientHello: len(h.TLS) > 0}
	for _, route := range h.Routes {
		if !slices.Contains(r.profiles, route.Profile) {
			r.profiles = append(r.profiles, route.Profile)
		}
	}
	return r
}

// needs is the generation that meets the requirements; not known if NGINX does not
// meet them yet.
func (s Static) needs(d requirements) (generation int, known bool) {
	if d.clientHello {
		if generation = s.clientHello; generation == 0 {
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

// Next returns the configuration for d, after current. If its files are those of
// current, the reason is empty, and next is current with what it was rendered from:
// pass it the next time. Else the reason says why NGINX must be reloaded.
//
// Removing what is no longer used needs no reload of its own: the next reload removes
// profiles and the phase of TLS policies that neither d nor the applied units use, and
// old dictionaries. grown, if not nil, are larger dictionaries to use.
func (d *Desired) Next(env nginxconf.Environment, current Static, grown *nginxconf.Dictionaries) (next Static, reason string, err error) {
	d.started = true
	globals := d.reachable(env, current)
	clientHello := d.clientHellos > 0 || globals.Process.TLS.RejectUnknown
	if grown == nil && current.serves(d, env, globals, clientHello) {
		return current, "", nil
	}
	kept := d.wantedProfiles()
	for p := range current.since {
		kept[p] = struct{}{}
	}
	same, err := d.render(env, current, globals, kept, clientHello || current.clientHello > 0, current.Dictionaries)
	if err != nil {
		return Static{}, "", err
	}
	if grown == nil && SameFiles(same.Files, current.Files) {
		current.from = same.from
		return current, "", nil
	}

	wanted := d.wantedProfiles()
	for _, applied := range d.appliedRequirements {
		for _, p := range applied.profiles {
			wanted[p] = struct{}{}
		}
		clientHello = clientHello || applied.clientHello
	}
	d.addCommon(wanted, current)
	dictionaries := current.Dictionaries
	dictionaries.Previous = nil
	if grown != nil {
		dictionaries = *grown
	}
	next, err = d.render(env, current, globals, wanted, clientHello, dictionaries)
	if err != nil {
		return Static{}, "", err
	}
	return next, why(current, next), nil
}

// addCommon adds profiles that hosts may ask for, as far as there is room: those that many ask for from the
// start, and the others with the first one that current lacks, so that further ones cause no reload.
func (d *Desired) addCommon(wanted map[model.Profile]struct{}, current Static) {
	if !d.KeepsCommon {
		return
	}
	list := d.globals.Common
	if current.Files != nil && (d.lacks(wanted, current) || d.hasOccasional(current)) {
		list = slices.Concat(list, d.globals.Occasional)
	}
	for _, p := range list {
		if len(wanted) >= maxProfiles {
			return
		}
		wanted[p] = struct{}{}
	}
}

// lacks reports whether a configuration lacks one of the profiles.
func (d *Desired) lacks(profiles map[model.Profile]struct{}, current Static) bool {
	for p := range profiles {
		if _, ok := current.since[p]; !ok && p != d.globals.Default {
			return true
		}
	}
	return false
}

// hasOccasional reports whether a configuration has a profile that is there for no host yet.
func (d *Desired) hasOccasional(current Static) bool {
	return slices.ContainsFunc(d.globals.Occasional, func(p model.Profile) bool {
		_, ok := current.since[p]
		return ok && d.profileUses[p] == 0 && p != d.globals.Default
	})
}

// serves reports whether rendering for d would give the same bytes, because its input
// is the same.
func (s Static) serves(d *Desired, env nginxconf.Environment, globals model.Globals, clientHello bool) bool {
	if s.Files == nil || clientHello && s.clientHello == 0 {
		return false
	}
	for p := range d.profileUses {
		if _, ok := s.since[p]; !ok {
			return false
		}
	}
	for _, p := range d.bound.always() {
		if _, ok := s.since[p]; !ok {
			return false
		}
	}
	return s.from.sameSettings(input{environment: env, globals: globals})
}

// reachable are the globals that one reload can lead to.
//
// NGINX opens new sockets before it closes others. All addresses of a family and one of them can be bound
// together only if all of their sockets are those of single workers. So where workers share one, it takes
// two or three reloads: to sockets of workers, to the other addresses, and back to one socket.
func (d *Desired) reachable(env nginxconf.Environment, current Static) model.Globals {
	g, now := d.globals, current.from.globals.Process.Listening
	wanted := g.Process.Listening
	if current.Files == nil || slices.Equal(now.At(env.IPv6), wanted.At(env.IPv6)) || !now.OneSocket && !wanted.OneSocket || !now.HasAll() && !wanted.HasAll() {
		return g
	}
	if now.OneSocket {
		g.Process.Listening = now
	}
	g.Process.Listening.OneSocket = false
	return g
}

// ForTenants reports whether hosts alone are the reason of a reload, and not the
// administrator's settings or the size of the shared memory.
func (d *Desired) ForTenants(env nginxconf.Environment, current Static, grown *nginxconf.Dictionaries) bool {
	return grown == nil && current.from.sameSettings(input{environment: env, globals: d.globals})
}

func (d *Desired) render(env nginxconf.Environment, current Static, globals model.Globals, profiles map[model.Profile]struct{}, clientHello bool, dictionaries nginxconf.Dictionaries) (Static, error) {
	d.planned++
	next := Static{
		serial:       d.planned,
		Generation:   max(current.Generation, current.Tried) + 1,
		Workers:      env.WorkerProcesses(globals.Process),
		Dictionaries: dictionaries,
		Default:      globals.Default,
		since:        map[model.Profile]int{},
	}
	for p := range profiles {
		next.since[p] = next.Generation
		if since, ok := current.since[p]; ok {
			next.since[p] = since
		}
	}
	if clientHello {
		next.clientHello = cmp.Or(current.clientHello, next.Generation)
	}
	others := maps.Clone(profiles)
	delete(others, next.Default)
	next.Profiles = slices.SortedFunc(maps.Keys(others), func(a, b model.Profile) int { return cmp.Compare(a.Name(), b.Name()) })
	next.from = input{environment: env, globals: globals, profiles: next.Profiles, clientHello: clientHello, dictionaries: dictionaries}
	conf, err := d.rendered.files(next.from)
	if err != nil {
		return Static{}, err
	}
	next.Files, err = d.withFiles(conf, env.Directives, profiles, current)
	return next, err
}

// A ReloadReason is a kind of difference between two configurations, for metrics.
type ReloadReason string

// The kinds.
const (
	FirstStart      ReloadReason = "start"
	NewProfile      ReloadReason = "profile"
	NewHandshakes   ReloadReason = "handshakes"
	OtherDefault    ReloadReason = "default"
	LargerMemory    ReloadReason = "memory"
	ProcessSettings ReloadReason = "settings"
)

// A difference is one of them, with what it is in the log.
type difference struct {
	kind ReloadReason
	text string
}

// why describes the difference between two configurations.
func why(current, next Static) string {
	var texts []string
	for _, d := range differences(current, next) {
		texts = append(texts, d.text)
	}
	return strings.Join(texts, ", ")
}

// ReloadReasons are the kinds of differences between two configurations, each once.
func ReloadReasons(current, next Static) []ReloadReason {
	var kinds []ReloadReason
	for _, d := range differences(current, next) {
		if !slices.Contains(kinds, d.kind) {
			kinds = append(kinds, d.kind)
		}
	}
	return kinds
}

func differences(current, next Static) []difference {
	if current.Files == nil {
		return []difference{{FirstStart, "start"}}
	}
	var reasons []difference
	usual := 0
	for _, p := range append(slices.Clone(next.Profiles), next.Default) {
		if _, ok := current.since[p]; ok {
			continue
		}
		if slices.Contains(next.from.globals.Occasional, p) {
			usual++
			continue
		}
		reasons = append(reasons, difference{NewProfile, fmt.Sprintf("profile %s is new", p.Name())})
	}
	if usual > 0 {
		reasons = append(reasons, difference{NewProfile, fmt.Sprintf("usual profiles that are new: %d", usual)})
	}
	if next.clientHello > current.clientHello {
		reasons = append(reasons, difference{NewHandshakes, "TLS handshakes differ by host"})
	}
	if next.Default != current.Default {
		reasons = append(reasons, difference{OtherDefault, "the ConfigMap has another default profile"})
	}
	if next.Dictionaries.Number != current.Dictionaries.Number {
		reasons = append(reasons, difference{LargerMemory, "the shared memory grows"})
	}
	if len(reasons) == 0 {
		reasons = append(reasons, difference{ProcessSettings, "settings of the process changed"})
	}
	return reasons
}
