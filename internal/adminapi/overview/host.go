package overview

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

// A Route is one path of a host.
type Route struct {
	// Kind is exact, prefix or pattern.
	Kind string `json:"kind"`
	Path string `json:"path"`
	// Backend is empty if Headgate itself answers.
	Backend  string `json:"backend,omitempty"`
	Fallback string `json:"fallback,omitempty"`
	// Ingress is the one with the rule, as in findings.
	Ingress string `json:"ingress,omitempty"`
	// Denied: the path answers 503.
	Denied bool `json:"denied,omitempty"`
	// Health is that of the backend.
	Health Health `json:"health"`
}

func routeOf(r *model.Route) Route {
	route := Route{Kind: r.Kind.String(), Path: r.Written(), Backend: r.Backend, Fallback: r.Fallback, Denied: r.Denied}
	if r.Origin.Ingress != "" {
		route.Ingress = "ingress/" + r.Origin.Namespace + "/" + r.Origin.Ingress
	}
	return route
}

// A Host is one in short.
type Host struct {
	Name string `json:"name"`
	// Namespace is that of the oldest Ingress.
	Namespace string `json:"namespace,omitempty"`
	Aliases   Few    `json:"aliases"`
	Ingresses Few    `json:"ingresses"`
	Routes    int    `json:"routes"`
	// Denied is the number of routes that answer 503 because of a setting.
	Denied int `json:"denied"`
	// Health is the worst of its backends'.
	Health Health `json:"health"`
	// Passthrough is the backend that TLS connections are passed to.
	Passthrough string `json:"passthrough,omitempty"`
	// TLS: a TLS section of an Ingress has the host. Certificate is what clients see then.
	TLS         bool         `json:"tls"`
	Certificate *Certificate `json:"certificate,omitempty"`
}

// Hosts are those whose names, aliases, Ingresses or backends have the text.
func (t *Table) Hosts(q Query) Page[Host] {
	t.mu.Lock()
	defer t.mu.Unlock()
	fits := func(key string) bool {
		return t.hostHas(key, q) && (!q.Problems || t.healthOf(key) > Well || t.deniedOf(key) > 0)
	}
	return pick(t.hostNames(), q, fits, t.hostOf)
}

// Host is one by its name, nil if there is none.
func (t *Table) Host(key string) *Host {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hosts[key] == nil {
		return nil
	}
	h := t.hostOf(key)
	return &h
}

// Routes are those of a host whose paths, Ingresses or backends have the text, in the order in
// which they are tried.
func (t *Table) Routes(key string, q Query) Page[Route] {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []Route
	h := cmp.Or(t.hosts[key], &host{})
	for _, r := range h.routes {
		r.Health = t.healthOfRoute(r)
		if q.has(r.Path, r.Ingress, r.Backend) && (!q.Problems || r.Health > Well || r.Denied) {
			found = append(found, r)
		}
	}
	p := Part(found, q)
	for i := range p.Items {
		p.Items[i].Path = Shorten(p.Items[i].Path)
	}
	return p
}

// Objects are what a host is made of, as findings name it: Ingresses, Services and the Secret of
// its certificate. It is nil if there is no such host.
func (t *Table) Objects(key string) map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hosts[key]
	if h == nil {
		return nil
	}
	objects := map[string]bool{}
	note := func(backend string) {
		if parts := strings.Split(backend, "/"); len(parts) == 3 {
			objects["service/"+parts[0]+"/"+parts[1]] = true
		}
	}
	note(h.passthrough)
	for i := range h.routes {
		r := &h.routes[i]
		objects[r.Ingress] = true
		note(r.Backend)
		note(r.Fallback)
	}
	if id, _ := t.shown(key); t.names[key].tls && id.secret != "" {
		objects["secret/"+id.secret] = true
	}
	return objects
}

// Of is the number of hosts, backends and certificates.
func (t *Table) Of() (hosts, backends, certificates int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.hosts), len(t.backends), len(t.certificates)
}

func (t *Table) hostHas(key string, q Query) bool {
	if q.has(key) {
		return true
	}
	for alias := range t.aliases[key] {
		if q.has(alias) {
			return true
		}
	}
	return slices.ContainsFunc(t.hosts[key].routes, func(r Route) bool { return q.has(r.Ingress, r.Backend) })
}

func (t *Table) hostOf(key string) Host {
	h := t.hosts[key]
	ingresses := map[string]struct{}{}
	for _, r := range h.routes {
		if r.Ingress != "" {
			ingresses[r.Ingress] = struct{}{}
		}
	}
	shown := Host{
		Name: key, Namespace: h.namespace, Passthrough: h.passthrough, Routes: len(h.routes), Denied: t.deniedOf(key), Health: t.healthOf(key),
		Aliases: few(slices.Sorted(maps.Keys(t.aliases[key]))), Ingresses: few(slices.Sorted(maps.Keys(ingresses))),
		TLS: t.names[key].tls,
	}
	if shown.TLS {
		id, fallback := t.shown(key)
		if c := t.certificates[id]; c != nil {
			certificate := c.show(id)
			certificate.Default = fallback
			shown.Certificate = &certificate
		}
	}
	return shown
}

func (t *Table) deniedOf(key string) (n int) {
	for _, r := range t.hosts[key].routes {
		if r.Denied {
			n++
		}
	}
	return n
}

// healthOf is the worst health of a host's backends.
func (t *Table) healthOf(key string) Health {
	worst := Well
	for _, r := range t.hosts[key].routes {
		worst = max(worst, t.healthOfRoute(r))
	}
	return worst
}

func (t *Table) healthOfRoute(r Route) Health {
	if b := t.backends[r.Backend]; b != nil {
		return b.health()
	}
	if r.Backend != "" {
		return Down
	}
	return Well
}

// usersOf are the first few hosts with a route to each of some backends.
func (t *Table) usersOf(backends ...string) map[string]Few {
	users := make(map[string][]string, len(backends))
	for _, key := range backends {
		users[key] = nil
	}
	for _, key := range t.hostNames() {
		h := t.hosts[key]
		note := func(backend string) {
			if list, wanted := users[backend]; wanted && (len(list) == 0 || list[len(list)-1] != key) {
				users[backend] = append(list, key)
			}
		}
		note(h.passthrough)
		for i := range h.routes {
			note(h.routes[i].Backend)
			note(h.routes[i].Fallback)
		}
	}
	shown := make(map[string]Few, len(users))
	for key, list := range users {
		shown[key] = few(list)
	}
	return shown
}
