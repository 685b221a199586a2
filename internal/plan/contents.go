package plan

import (
	"fmt"
	"maps"
	"strings"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/unit"
)

// refer adds the certificates and contents that come with a unit, and removes those
// that nothing refers to any longer. Contents belong to the owner, a namespace, and
// certificates to that of their Secret. What several namespaces have belongs to none:
// none of them can then use up the time for it.
func (d *Desired) refer(from unit.Key, certificates []model.Certificate, owner string, contents []model.Content) {
	var wanted []unit.Key
	add := func(key unit.Key, owner string, pack func(owner string) unit.Unit) {
		wanted = append(wanted, key)
		if d.users[key]++; d.users[key] == 1 {
			d.set(pack(owner))
		} else if was := d.units[key].Owner; was != "" && was != owner {
			d.set(pack(""))
		}
	}
	for _, c := range certificates {
		namespace, _, _ := strings.Cut(c.Secret, "/")
		add(unit.Certificate.Key(c.Hash), namespace, func(owner string) unit.Unit { return unit.FromCertificate("", owner, c) })
		d.shown.Add(c)
	}
	for _, c := range contents {
		key := unit.Content.Key(c.Name)
		// Neighbours often have the same one. Counting one twice does no harm.
		if n := len(wanted); n == 0 || wanted[n-1] != key {
			add(key, owner, func(owner string) unit.Unit { return unit.FromContent(owner, c) })
		}
	}
	for _, key := range d.references[from] {
		if d.users[key]--; d.users[key] == 0 {
			delete(d.users, key)
			d.remove(key)
			if key.Kind == unit.Certificate {
				d.shown.Remove(key.Name)
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
