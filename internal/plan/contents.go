package plan

import (
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// contents are the contents that hosts refer to.
type contents struct {
	// of has those of each host, by its name, and users the number of hosts that refer
	// to each.
	of    map[string][]string
	users map[string]int
}

func newContents() contents { return contents{map[string][]string{}, map[string]int{}} }

// setContents adds the contents of a host, and removes those that no host refers to
// any longer.
func (d *Desired) setContents(host string, wanted []model.Content) {
	var names []string
	for _, c := range wanted {
		names = append(names, c.Name)
		d.contents.users[c.Name]++
		if d.contents.users[c.Name] == 1 {
			d.set(unit.FromContent(c))
		}
	}
	for _, name := range d.contents.of[host] {
		if d.contents.users[name]--; d.contents.users[name] == 0 {
			delete(d.contents.users, name)
			d.remove(unit.Content.Key(name))
		}
	}
	d.contents.of[host] = names
	if names == nil {
		delete(d.contents.of, host)
	}
}

func distinctContents(h model.Host) []model.Content {
	var list []model.Content
	seen := map[string]bool{}
	add := func(c model.Content) {
		if !seen[c.Name] {
			seen[c.Name] = true
			list = append(list, c)
		}
	}
	for _, c := range h.Contents {
		add(c)
	}
	for _, r := range h.Routes {
		for _, c := range r.Contents {
			add(c)
		}
	}
	return list
}
