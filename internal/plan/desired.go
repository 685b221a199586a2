package plan

import (
	"bytes"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/plan/stapling"
	"github.com/headgate/headgate/internal/unit"
)

// Desired is the model as units, and which of them the data plane has. A Desired is
// used by one goroutine.
type Desired struct {
	// KeepsCommon has configurations have the profiles of model.Globals.Common too.
	KeepsCommon bool

	globals model.Globals
	units   map[unit.Key]unit.Unit
	counts  map[unit.Kind]int
	// requirements of each host, by its name, how many hosts name each profile, and
	// how many have a TLS policy.
	requirements map[string]requirements
	profileUses  map[model.Profile]int
	clientHellos int
	// hosts are the hosts of names, by name.
	hosts map[string]string
	// references are the certificates and contents that come with each host, name or the
	// patterns, and users the number of references to each.
	references map[unit.Key][]unit.Key
	users      map[unit.Key]int
	// files are the contents that profiles name as files, by host, and those of the
	// default profile by "".
	files map[string][]model.Content
	// shown are all certificates in use.
	shown *stapling.Certificates
	// expected are hosts that are to be built again, with the texts in their units that may
	// name a backend, nil until these are asked for.
	expected map[string]map[string]struct{}
	// patterns are all name patterns, and patternsWait is set while their unit
	// lacks some, whose hosts NGINX has no profiles for yet.
	patterns     model.NamePatterns
	patternsWait bool

	// changed are the units that may differ from what was applied.
	changed map[unit.Key]struct{}
	applied map[unit.Key]string
	// same has, for applied units, the first of a row of versions with the same guards,
	// where that is known.
	same map[unit.Key]string
	// appliedRequirements are those of the applied units of hosts.
	appliedRequirements map[string]requirements
	// restoring is set between Forget and Restored.
	restoring bool

	// started is set once there is a configuration. Since then, models are hosts that are
	// not applied yet, and before what was applied of them.
	started bool
	models  map[string]model.Host
	before  map[string]unit.Unit
	// waiting are the hosts that NGINX does not have all settings for.
	waiting        map[string]waiting
	waitingChanges int
	// nearest are decisions for the configurations substitutesFor, by their serials, and
	// known the profiles that all of these have, nil until it is asked for.
	nearest        map[model.Profile]substitute
	known          *search
	substitutesFor []int
	// planned counts configurations.
	planned int

	bound    profileBound
	rendered renderings
}

// NewDesired is empty. directives say which profile may replace which.
func NewDesired(directives directive.List) *Desired {
	return &Desired{
		units:               map[unit.Key]unit.Unit{},
		counts:              map[unit.Kind]int{},
		requirements:        map[string]requirements{},
		profileUses:         map[model.Profile]int{},
		hosts:               map[string]string{},
		references:          map[unit.Key][]unit.Key{},
		users:               map[unit.Key]int{},
		files:               map[string][]model.Content{},
		shown:               stapling.New(),
		changed:             map[unit.Key]struct{}{},
		applied:             map[unit.Key]string{},
		appliedRequirements: map[string]requirements{},
		models:              map[string]model.Host{},
		before:              map[string]unit.Unit{},
		expected:            map[string]map[string]struct{}{},
		same:                map[unit.Key]string{},
		waiting:             map[string]waiting{},
		bound:               newProfileBound(directives),
	}
}

// Set adds or replaces what was built, or removes the unit if there is no model, with
// its certificates and contents. It returns findings about a host's profiles.
func (d *Desired) Set(b unit.Built) (findings []finding.Finding) {
	switch b.Kind {
	case unit.Globals:
		d.globals, _ = b.Model.(model.Globals)
		d.shown.SetStapling(d.globals.Process.Stapling)
		d.bound.setDefault(d.globals.Default)
		d.bound.setZones(nginxconf.ZonesOf(d.globals))
		d.setFiles("", d.globals.Files)
	case unit.DefaultCertificate:
		c, _ := b.Model.(model.Certificate)
		d.shown.SetDefault(c)
	case unit.Host:
		b.Model, findings = d.setHost(b)
	case unit.Name:
		delete(d.hosts, b.Name)
		if n, ok := b.Model.(model.Name); ok {
			d.hosts[b.Name] = n.Host
		}
		d.refer(b.Key, b.Certificates, "", nil)
	case unit.Patterns:
		d.patterns, _ = b.Model.(model.NamePatterns)
		d.refer(b.Key, b.Certificates, "", nil)
	}
	if u, ok := b.Pack(); ok {
		d.set(u)
	} else if b.Kind.Traits().Pushed() {
		d.remove(b.Key)
	}
	return findings
}

// setHost bounds the profiles of a host and keeps its requirements. It returns the
// host as it is served, nil for none.
func (d *Desired) setHost(b unit.Built) (served any, findings []finding.Finding) {
	delete(d.expected, b.Name)
	h, found := b.Model.(model.Host)
	if !found {
		d.bound.remove(b.Name)
		d.setRequirements(b.Name, requirements{})
		d.refer(b.Key, nil, "", nil)
		d.setFiles(b.Name, nil)
		d.forgetModel(b.Name)
		return nil, nil
	}
	d.bound.note(h)
	findings = d.BoundProfiles(&h)
	d.keepModel(h)
	needed := requirementsOf(h)
	contents := slices.Clone(h.Contents)
	var files []model.Content
	var seen []model.Profile
	for _, r := range h.Routes {
		if !slices.Contains(seen, r.Profile) {
			seen = append(seen, r.Profile)
			files = append(files, r.Files...)
		}
		contents = append(contents, r.Contents...)
	}
	d.setRequirements(h.Name, needed)
	d.refer(b.Key, nil, h.Namespace, contents)
	d.setFiles(h.Name, files)
	return h, findings
}

// keepModel keeps what a substitute is made of, until the host is applied.
func (d *Desired) keepModel(h model.Host) {
	if !d.started {
		// All that is known by then is in the first configuration.
		return
	}
	key := unit.Host.Key(h.Name)
	if was, ok := d.units[key]; ok && d.applied[key] == was.Version {
		d.before[h.Name] = was
	} else if w := d.waiting[h.Name]; w.stands && d.applied[key] == w.unit.Version {
		d.before[h.Name] = w.unit
	}
	d.models[h.Name] = h
}

func (d *Desired) forgetModel(host string) {
	d.waitsNoMore(host)
	delete(d.models, host)
	delete(d.before, host)
}

// BoundProfiles replaces profiles beyond the maximum by the nearest stricter ones, as
// Set does, and has no other effect.
func (d *Desired) BoundProfiles(h *model.Host) []finding.Finding { return d.bound.bound(h) }

// Rebound decides which profiles are beyond the maximum, after hosts were set or
// removed, and returns the hosts to build and set again because they get other
// profiles. After that, it returns none.
func (d *Desired) Rebound() []string { return d.bound.rebound() }

func (d *Desired) setRequirements(host string, wanted requirements) {
	was := d.requirements[host]
	for _, p := range wanted.profiles {
		d.profileUses[p]++
	}
	for _, p := range was.profiles {
		if d.profileUses[p]--; d.profileUses[p] == 0 {
			delete(d.profileUses, p)
		}
	}
	if wanted.clientHello {
		d.clientHellos++
	}
	if was.clientHello {
		d.clientHellos--
	}
	d.requirements[host] = wanted
	if wanted.profiles == nil && !wanted.clientHello {
		delete(d.requirements, host)
	}
}

// Expect notes that a host is to be built again, later than what changed with it. Until
// it is set, no backend is deleted that its last version names, and its name is not pushed
// if the host is new.
func (d *Desired) Expect(host string) {
	if _, known := d.expected[host]; !known {
		d.expected[host] = nil
	}
}

// isNew reports whether a host was never built.
func (d *Desired) isNew(host string) bool {
	_, expected := d.expected[host]
	_, built := d.units[unit.Host.Key(host)]
	return expected && !built
}

// isNamed reports whether the last version of a host that is to be built again may name a
// backend.
func (d *Desired) isNamed(backend string) bool {
	for host, texts := range d.expected {
		if texts == nil {
			texts = map[string]struct{}{}
			for text := range bytes.SplitSeq(d.units[unit.Host.Key(host)].Payload, []byte{'"'}) {
				if bytes.Count(text, []byte{'/'}) == strings.Count(model.BackendKey("", "", ""), "/") {
					texts[string(text)] = struct{}{}
				}
			}
			d.expected[host] = texts
		}
		if _, named := texts[backend]; named {
			return true
		}
	}
	return false
}

// packPatterns leaves patterns of unknown hosts out of their unit, so that one such
// host does not hold back changes of other tenants. It reports whether there are any.
func (d *Desired) packPatterns(statics []Static) bool {
	if _, changed := d.changed[unit.PatternsKey]; !changed && !d.patternsWait {
		return false
	}
	waits := false
	known := func(names []model.Name) []model.Name {
		return slices.DeleteFunc(slices.Clone(names), func(n model.Name) bool {
			known := d.knownToAll(n.Host, statics)
			waits = waits || !known
			return !known
		})
	}
	now := model.NamePatterns{LeadingWildcards: known(d.patterns.LeadingWildcards), TrailingWildcards: known(d.patterns.TrailingWildcards), Regexes: known(d.patterns.Regexes)}
	if waits || d.patternsWait && !d.patterns.Empty() {
		d.set(unit.FromNamePatterns(now))
	}
	d.patternsWait = waits
	return waits
}

// knownToAll reports whether a host is in the data plane or can be pushed.
func (d *Desired) knownToAll(host string, statics []Static) bool {
	return !slices.ContainsFunc(statics, func(s Static) bool { return !d.hostKnown(host, s) })
}

func (d *Desired) set(u unit.Unit) {
	if _, ok := d.units[u.Key]; !ok {
		d.counts[u.Kind]++
	}
	d.units[u.Key] = u
	d.changed[u.Key] = struct{}{}
}

func (d *Desired) remove(key unit.Key) {
	if _, ok := d.units[key]; ok {
		d.counts[key.Kind]--
	}
	delete(d.units, key)
	d.changed[key] = struct{}{}
}

// DrainOCSPChanges returns the certificates that need an OCSP response since the last
// call, and the hashes of those that no longer do.
func (d *Desired) DrainOCSPChanges() (added []model.Certificate, removed []string) {
	return d.shown.Drain()
}

// Count is the number of units of a kind.
func (d *Desired) Count(kind unit.Kind) int { return d.counts[kind] }

// Size is the number of units, and the bytes of all payloads.
func (d *Desired) Size() (units int, payloads int64) {
	for _, u := range d.units {
		payloads += int64(len(u.Payload))
	}
	return len(d.units), payloads
}

// Forget marks all units as not applied: the data plane is empty. Until Restored,
// names are not held with their hosts: the hosts existed before, and without them
// their names must answer 503, not 404.
func (d *Desired) Forget() {
	d.restoring = true
	clear(d.applied)
	clear(d.same)
	clear(d.appliedRequirements)
	clear(d.changed)
	for key := range d.units {
		d.changed[key] = struct{}{}
	}
}

// Restored ends what Forget began.
func (d *Desired) Restored() { d.restoring = false }

// AppliedNames are the names of the units of a kind that the data plane has, sorted.
func (d *Desired) AppliedNames(kind unit.Kind) []string {
	names := []string{}
	for key := range d.applied {
		if key.Kind == kind {
			names = append(names, key.Name)
		}
	}
	slices.Sort(names)
	return names
}

// wantedProfiles are those that are always there, and those of all hosts.
func (d *Desired) wantedProfiles() map[model.Profile]struct{} {
	set := map[model.Profile]struct{}{}
	for _, p := range d.bound.always() {
		set[p] = struct{}{}
	}
	for p := range d.profileUses {
		set[p] = struct{}{}
	}
	return set
}
