package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// A host whose profiles NGINX does not have waits for a reload, which may be minutes
// away. Its other settings don't wait: it is served at once with the nearest stricter
// profiles that NGINX has, so no guard, denial or removed user is held up by a profile.

// A waiting host has settings that the data plane does not have exactly.
type waiting struct {
	// version is that of the host, and statics the serials of the configurations, which
	// this is for.
	version string
	statics []int
	// stands is set if unit is served meanwhile. Else the applied version stays; a host
	// without one is not served.
	stands       bool
	host         model.Host
	unit         unit.Unit
	requirements requirements
	findings     []finding.Finding
}

// substituteHosts decides what is served of the hosts that wait. A host that is not waiting any
// more is forgotten.
func (d *Desired) substituteHosts(statics []Static) {
	serials := make([]int, len(statics))
	for i, s := range statics {
		serials[i] = s.serial
	}
	if !slices.Equal(serials, d.substitutesFor) {
		d.substitutesFor, d.nearest, d.known = serials, map[model.Profile]substitute{}, nil
	}
	for key := range d.changed {
		if key.Kind != unit.Host {
			continue
		}
		exact, wanted := d.units[key]
		if !wanted || d.meets(d.requirements[key.Name], statics) {
			d.waitsNoMore(key.Name)
			continue
		}
		if w, ok := d.waiting[key.Name]; ok && w.version == exact.Version && slices.Equal(w.statics, serials) {
			continue
		}
		if h, ok := d.models[key.Name]; ok {
			d.waiting[key.Name] = d.substituteHost(h, exact, statics)
			d.waitingChanges++
		}
	}
}

// sameGuards is the first of a row of versions of a host with the guards of u, which
// ends with the applied one; empty if none is known.
func (d *Desired) sameGuards(u unit.Unit) string {
	if applied, is := d.appliedHost(u.Name); is && unit.SameGuards(applied, u) {
		return cmp.Or(d.same[u.Key], applied.Version)
	}
	return ""
}

func (d *Desired) waitsNoMore(host string) {
	if w, waits := d.waiting[host]; waits {
		if w.stands && d.applied[unit.Host.Key(host)] == w.unit.Version {
			d.before[host] = w.unit
		}
		delete(d.waiting, host)
		d.waitingChanges++
	}
}

// meets reports whether all configurations have what a host requires.
func (d *Desired) meets(r requirements, statics []Static) bool {
	return !slices.ContainsFunc(statics, func(s Static) bool {
		_, known := s.needs(r)
		return !known
	})
}

// substituteHost decides what is served of a host that waits.
func (d *Desired) substituteHost(h model.Host, exact unit.Unit, statics []Static) waiting {
	w := waiting{version: exact.Version, statics: d.substitutesFor, stands: true}
	applied, isApplied := d.appliedHost(h.Name)
	if len(h.TLS) > 0 && !d.meets(requirements{clientHello: true}, statics) {
		// Until the reload no host has such policies. One that is served already goes on
		// without.
		w.stands = isApplied
		h.TLS = nil
		w.findings = append(w.findings, waits(append(h.Routes, model.Route{})[0], "until then its settings of TLS handshakes have no effect"))
	}
	lacks := false
	routes := h.Routes
	h.Routes = slices.Clone(h.Routes)
	for i, r := range routes {
		if d.meets(requirements{profiles: []model.Profile{r.Profile}}, statics) {
			continue
		}
		served := d.nearestKnown(r.Profile, statics)
		effect := "until then the nearest stricter combination is used: " + d.bound.directives.Against(served.profile, r.Profile)
		if served.denied {
			lacks = true
			effect = "until then the paths answer 503"
		}
		w.findings = append(w.findings, waits(r, effect))
		h.Routes[i].Profile = served.profile
		h.Routes[i].Denied = r.Denied || served.denied
	}
	if lacks && isApplied && unit.SameGuards(applied, exact) {
		w.stands = false
	}
	if !w.stands {
		effect := "until then the host is not served"
		if isApplied {
			effect = "until then the host is served as before"
		}
		for i := range w.findings {
			w.findings[i].Effect = effect
		}
	}
	w.requirements = requirementsOf(h)
	if w.stands = w.stands && d.meets(w.requirements, statics); w.stands {
		w.host, w.unit = h, unit.FromHost(h)
	}
	w.findings = finding.Limit(w.findings)
	return w
}

func waits(r model.Route, effect string) finding.Finding {
	return finding.Finding{
		Object: "ingress/" + r.Origin.Namespace + "/" + r.Origin.Ingress, Field: "metadata.annotations", Code: finding.Waits, Effect: effect,
	}
}

// nearestKnown is the nearest stricter profile that all configurations have.
func (d *Desired) nearestKnown(asked model.Profile, statics []Static) substitute {
	if served, ok := d.nearest[asked]; ok {
		return served
	}
	if d.known == nil {
		var known []model.Profile
		for _, p := range append([]model.Profile{statics[0].Default}, statics[0].Profiles...) {
			if d.meets(requirements{profiles: []model.Profile{p}}, statics) {
				known = append(known, p)
			}
		}
		ofDenied := statics[0].Default
		if len(known) > 0 {
			ofDenied = known[0]
		}
		d.known = newSearch(d.bound.directives, known, ofDenied)
	}
	served := d.known.nearest(asked)
	d.nearest[asked] = served
	return served
}

// appliedHost is the unit of a host that the data plane has, if it is known here.
func (d *Desired) appliedHost(name string) (unit.Unit, bool) {
	version, applied := d.applied[unit.Host.Key(name)]
	if w := d.waiting[name]; applied && w.stands && w.unit.Version == version {
		return w.unit, true
	}
	if before := d.before[name]; applied && before.Version == version {
		return before, true
	}
	// Something is applied whose guards are not known.
	return unit.Unit{}, applied
}

// SubstituteHost replaces a host that waits for a reload by what is served meanwhile.
func (d *Desired) SubstituteHost(h *model.Host) {
	if w := d.waiting[h.Name]; w.stands {
		*h = w.host
	}
}

// WaitingHosts is how many hosts wait for a reload. changes counts changes of them.
func (d *Desired) WaitingHosts() (hosts, changes int) { return len(d.waiting), d.waitingChanges }

// WaitingNamespaces are those whose Ingresses need a reload of NGINX, since a configuration lacks profiles
// of theirs, sorted.
func (d *Desired) WaitingNamespaces(current Static) []string {
	var list []string
	for _, h := range d.models {
		for _, r := range h.Routes {
			if _, known := current.since[r.Profile]; !known {
				list = append(list, r.Origin.Namespace)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Waiting are findings about the hosts that wait for a reload. why says what the reload
// waits for.
func (d *Desired) Waiting(why string) (findings []finding.Finding) {
	for _, name := range slices.Sorted(maps.Keys(d.waiting)) {
		for _, f := range d.waiting[name].findings {
			f.Message = fmt.Sprintf("NGINX must be reloaded for this combination of static settings, and %s", why)
			findings = append(findings, f)
		}
	}
	return finding.Sort(findings)
}
