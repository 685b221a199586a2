package plan

import (
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// refer adds the certificates and contents that come with a unit, and removes those
// that nothing refers to any longer.
func (d *Desired) refer(from unit.Key, certificates []model.Certificate, contents []model.Content) {
	var wanted []unit.Key
	isFirst := func(key unit.Key) bool {
		wanted = append(wanted, key)
		d.users[key]++
		return d.users[key] == 1
	}
	for _, c := range certificates {
		if isFirst(unit.Certificate.Key(c.Hash)) {
			d.set(unit.FromCertificate("", c))
		}
		d.shown.add(c)
	}
	for _, c := range contents {
		key := unit.Content.Key(c.Name)
		// Neighbours often have the same one. Counting one twice does no harm.
		if n := len(wanted); (n == 0 || wanted[n-1] != key) && isFirst(key) {
			d.set(unit.FromContent(c))
		}
	}
	for _, key := range d.references[from] {
		if d.users[key]--; d.users[key] == 0 {
			delete(d.users, key)
			d.remove(key)
			if key.Kind == unit.Certificate {
				d.shown.remove(key.Name)
			}
		}
	}
	d.references[from] = wanted
	if wanted == nil {
		delete(d.references, from)
	}
}
