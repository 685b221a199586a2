package traffic

import (
	"encoding/json"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

// SetHost sets the routes of a host, none for nil. What was counted for others goes.
func (t *Table) SetHost(name string, h *model.Host) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.hosts, name)
	if h != nil {
		routes := make(map[route][]string, len(h.Routes))
		for i := range h.Routes {
			labels := routeOf(&h.Routes[i])
			// Routes of different kinds may have the same labels.
			routes[labels] = appendCanaries(routes[labels], &h.Routes[i])
		}
		t.hosts[name] = routes
	}
	t.prune(name)
	t.note()
}

// appendCanaries appends the labels of a route's canaries, as canary.lua makes them.
func appendCanaries(list []string, r *model.Route) []string {
	for _, p := range r.Policies {
		for _, c := range canariesOf(p) {
			list = append(list, strings.ReplaceAll(c.Backend, "/", "-"))
		}
	}
	return list
}

// canariesOf are the canaries that the value of a policy is, nil if it is something else.
func canariesOf(p model.Policy) []model.Canary {
	switch v := p.Value.(type) {
	case []model.Canary:
		return v
	case model.Raw:
		var list []model.Canary
		// Values of other features have other fields.
		if strings.HasPrefix(string(v), `[{"backend":`) && json.Unmarshal([]byte(v), &list) == nil {
			return list
		}
	}
	return nil
}

// SetName sets the host of a name, none for "".
func (t *Table) SetName(name, host string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.names[name]
	if host == "" {
		delete(t.names, name)
	} else {
		t.names[name] = host
	}
	if before != host {
		t.prune(before)
		t.note()
	}
}

// routeOf has a route's labels, as new_group of lua/headgate/traffic.lua makes them.
func routeOf(r *model.Route) route {
	labels := route{namespace: r.Origin.Namespace, ingress: r.Origin.Ingress, path: r.Written()}
	if r.Kind == model.Pattern {
		labels.path = strings.TrimPrefix(r.Path, "^")
	}
	if parts := strings.Split(r.Backend, "/"); len(parts) > 1 && !r.Default {
		labels.service = parts[1]
	}
	return labels
}
