package plan

import (
	"fmt"
	"maps"

	"github.com/headgate/headgate/internal/directive"
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

func (d *Desired) setFiles(host string, files []model.Content) {
	d.files[host] = files
	if files == nil {
		delete(d.files, host)
	}
}

// withFiles are static files with those that the profiles name. Files of profiles that
// nothing asks for any more are in the current configuration.
func (d *Desired) withFiles(static map[string][]byte, declared directive.List, profiles map[model.Profile]struct{}, current Static) (map[string][]byte, error) {
	var known map[string][]byte
	for p := range profiles {
		for _, name := range declared.Files(p) {
			if known == nil {
				known, static = d.knownFiles(current), maps.Clone(static)
			}
			content, ok := known[name]
			if !ok {
				return nil, fmt.Errorf("the profile %s names the file %s, which no route has", p.Name(), name)
			}
			static[name] = content
		}
	}
	return static, nil
}

func (d *Desired) knownFiles(current Static) map[string][]byte {
	known := maps.Clone(current.Files)
	if known == nil {
		known = map[string][]byte{}
	}
	for _, files := range d.files {
		for _, c := range files {
			known[directive.Files+"/"+c.Name] = c.Bytes
		}
	}
	return known
}
