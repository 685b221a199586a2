package plan

import (
	"slices"

	"github.com/headgate/headgate/internal/unit"
)

// Delta returns the changes to push now, in order, and how many units are not pushed as
// they are. Hosts with profiles that NGINX does not have yet are pushed with the
// nearest stricter ones. Those without are held, together with their names; name
// patterns are pushed without such names. While a host is held, no backends,
// certificates and contents are deleted: the applied version of the host may still
// refer to them. During a reload, a profile must be in both configurations.
func (d *Desired) Delta(static Static, coming ...Static) (changes []unit.Change, held int) {
	statics := append([]Static{static}, coming...)
	d.substituteHosts(statics)
	old := 0
	if d.packPatterns(statics) {
		held++
		old++
	}
	var deletions []unit.Change
	for key := range d.changed {
		u, wanted := d.units[key]
		version, present := d.applied[key]
		switch {
		case wanted && present && version == u.Version, !wanted && !present:
			d.unchanged(key)
		case !wanted && key.Kind == unit.Backend && d.isNamed(key.Name):
		case !wanted:
			deletions = append(deletions, unit.Change{Kind: key.Kind, Name: key.Name, Delete: true})
		default:
			needs, known := d.needs(key, static)
			for _, next := range coming {
				_, stays := d.needs(key, next)
				known = known && stays
			}
			stands := false
			if !known {
				held++
				if u, stands = d.unitOfWaiting(key); !stands {
					if key.Kind != unit.Name || !d.isNew(d.hosts[key.Name]) {
						old++
					}
					continue
				}
				if present && version == u.Version {
					continue
				}
				needs, _ = static.needs(d.waiting[key.Name].requirements)
			}
			c := unit.Change{Kind: u.Kind, Name: u.Name, Needs: needs, Version: u.Version, Owner: u.Owner, Payload: u.Payload}
			// After a reload there are older workers, which can't use it.
			if present && (stands || needs > 1 && needs == static.Generation) {
				c.Same = d.sameGuards(u)
			}
			changes = append(changes, c)
		}
	}
	if old > 0 {
		deletions = slices.DeleteFunc(deletions, func(c unit.Change) bool { return c.Kind.Traits().Kept })
	}
	// A unit is put after those that it refers to, and deleted before them.
	slices.SortFunc(changes, func(a, b unit.Change) int { return a.Key().Compare(b.Key()) })
	slices.SortFunc(deletions, func(a, b unit.Change) int { return a.Key().CompareDeleted(b.Key()) })
	return append(changes, deletions...), held
}

// needs is the generation that a unit needs; not known if there is none yet.
func (d *Desired) needs(key unit.Key, static Static) (generation int, known bool) {
	switch key.Kind {
	case unit.Host:
		return static.needs(d.requirements[key.Name])
	case unit.Name:
		return 0, d.hostKnown(d.hosts[key.Name], static)
	}
	return 0, true
}

// unitOfWaiting is what stands in for a unit, if there is such a thing.
func (d *Desired) unitOfWaiting(key unit.Key) (u unit.Unit, stands bool) {
	w := d.waiting[key.Name]
	return w.unit, key.Kind == unit.Host && w.stands
}

// unchanged notes that the data plane has a unit as it is wanted.
func (d *Desired) unchanged(key unit.Key) {
	if delete(d.changed, key); len(d.changed) == 0 {
		// A map keeps the room that it once had, and at first everything has changed.
		d.changed = map[unit.Key]struct{}{}
	}
	if key.Kind == unit.Host {
		d.forgetModel(key.Name)
	}
}

// hostKnown reports whether the host is in the data plane or can be pushed.
func (d *Desired) hostKnown(name string, static Static) bool {
	if _, applied := d.applied[unit.Host.Key(name)]; applied || d.restoring {
		return true
	}
	if d.waiting[name].stands {
		return true
	}
	if d.isNew(name) {
		return false
	}
	_, known := static.needs(d.requirements[name])
	return known
}

// Applied marks changes as applied.
func (d *Desired) Applied(changes []unit.Change) {
	for _, c := range changes {
		key := c.Key()
		delete(d.same, key)
		if c.Same != "" {
			d.same[key] = c.Same
		}
		if c.Delete {
			delete(d.applied, key)
			if c.Kind == unit.Host {
				delete(d.appliedRequirements, c.Name)
			}
		} else {
			d.applied[key] = c.Version
			if w := d.waiting[c.Name]; c.Kind == unit.Host && w.stands && w.unit.Version == c.Version {
				d.appliedRequirements[c.Name] = w.requirements
			} else if c.Kind == unit.Host {
				d.appliedRequirements[c.Name] = d.requirements[c.Name]
			}
		}
		if u, wanted := d.units[key]; wanted == !c.Delete && u.Version == c.Version {
			d.unchanged(key)
		}
	}
}
