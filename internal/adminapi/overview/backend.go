package overview

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

// Health says how much of a backend works.
type Health int

// From the best to the worst.
const (
	// Well: there is nothing to say.
	Well Health = iota
	// Degraded: some endpoints get no requests because they fail.
	Degraded
	// Down: there is no endpoint, or all of them fail.
	Down
)

// MarshalJSON writes ok, degraded or down.
func (h Health) MarshalJSON() ([]byte, error) {
	return json.Marshal([...]string{"ok", "degraded", "down"}[h])
}

// A backend is what is kept of one.
type backend struct {
	endpoints, terminating []netip.AddrPort
	checked                bool
	unhealthy              []model.UnhealthyEndpoint
}

func (b *backend) health() Health {
	switch failing := len(b.unhealthy); {
	case len(b.endpoints) == 0, failing > 0 && failing >= len(b.all()):
		return Down
	case failing > 0:
		return Degraded
	}
	return Well
}

// all are its endpoints with those that fail.
func (b *backend) all() []netip.AddrPort {
	list := slices.Clone(b.endpoints)
	for _, u := range b.unhealthy {
		list = append(list, u.Address)
	}
	slices.SortFunc(list, netip.AddrPort.Compare)
	return slices.Compact(list)
}

func (t *Table) setBackend(key string, m model.Backend, found bool) {
	if !found {
		delete(t.backends, key)
		t.sortedBackends = nil
		return
	}
	if t.backends[key] == nil {
		t.sortedBackends = nil
	}
	t.backends[key] = &backend{endpoints: m.Endpoints, terminating: m.Terminating, checked: len(m.Health.Checked) > 0, unhealthy: m.Health.Unhealthy}
}

// A Backend is one in short.
type Backend struct {
	// Key is its namespace, Service and port.
	Key       string `json:"key"`
	Namespace string `json:"namespace,omitempty"`
	Service   string `json:"service"`
	Port      string `json:"port,omitempty"`
	// Endpoints is the number of all, and Unhealthy of those whose health checks fail.
	Endpoints int `json:"endpoints"`
	Unhealthy int `json:"unhealthy"`
	// Ejected is the number of those that a worker avoids or that it knows to fail.
	Ejected int    `json:"ejected"`
	Health  Health `json:"health"`
	// Checked: health checks are made.
	Checked bool `json:"checked"`
	Hosts   Few  `json:"hosts"`
}

// An Endpoint is one with its health.
type Endpoint struct {
	Address string `json:"address"`
	// State is ok, unhealthy, ejected or terminating.
	State string `json:"state"`
	// Used: it gets requests.
	Used bool   `json:"used"`
	Why  string `json:"why,omitempty"`
}

// An Ejection is an endpoint that a worker knows to fail.
type Ejection struct {
	Backend, Endpoint string
	// Why is the reason in words, with the worker.
	Why string
	// Avoided: it gets no requests of that worker.
	Avoided bool
}

// Backends are those whose keys have the text.
func (t *Table) Backends(q Query, ejections []Ejection) Page[Backend] {
	t.mu.Lock()
	defer t.mu.Unlock()
	fits := func(key string) bool {
		return q.has(key) && (!q.Problems || t.backendOf(key, ejections).Health > Well)
	}
	p := pick(t.backendKeys(), q, fits, func(key string) Backend { return t.backendOf(key, ejections) })
	keys := make([]string, len(p.Items))
	for i := range p.Items {
		keys[i] = p.Items[i].Key
	}
	users := t.usersOf(keys...)
	for i := range p.Items {
		p.Items[i].Hosts = users[p.Items[i].Key]
	}
	return p
}

// Backend is one by its key, nil if there is none, with the endpoints whose addresses have the
// text.
func (t *Table) Backend(key string, q Query, ejections []Ejection) (*Backend, Page[Endpoint]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.backends[key]
	if b == nil {
		return nil, Page[Endpoint]{}
	}
	shown := t.backendOf(key, ejections)
	shown.Hosts = t.usersOf(key)[key]
	var list []Endpoint
	for _, e := range b.show(key, ejections) {
		if q.has(e.Address) && (!q.Problems || e.State != "ok") {
			list = append(list, e)
		}
	}
	return &shown, Part(list, q)
}

func (t *Table) backendOf(key string, ejections []Ejection) Backend {
	b := t.backends[key]
	all := b.all()
	shown := Backend{Key: key, Endpoints: len(all), Unhealthy: len(b.unhealthy), Health: b.health(), Checked: b.checked}
	parts := strings.SplitN(key, "/", 3)
	shown.Namespace, shown.Service = parts[0], key
	if len(parts) == 3 {
		shown.Service, shown.Port = parts[1], parts[2]
	}
	shown.Ejected = len(ejected(key, all, ejections))
	switch {
	case shown.Ejected > 0 && shown.Ejected+shown.Unhealthy >= len(all):
		shown.Health = Down
	case shown.Ejected > 0:
		shown.Health = max(shown.Health, Degraded)
	}
	return shown
}

// ejected are the endpoints of a backend that workers know to fail, with the reasons.
func ejected(key string, all []netip.AddrPort, ejections []Ejection) map[string][]Ejection {
	found := map[string][]Ejection{}
	for _, e := range ejections {
		if e.Backend != key {
			continue // Most are of others, and reading an address takes longer.
		}
		if address, err := netip.ParseAddrPort(e.Endpoint); err == nil && slices.Contains(all, address) {
			found[address.String()] = append(found[address.String()], e)
		}
	}
	return found
}

// show lists the endpoints, those that fail first.
func (b *backend) show(key string, ejections []Ejection) []Endpoint {
	var failing, well, ending []Endpoint
	why := map[netip.AddrPort]string{}
	for _, u := range b.unhealthy {
		why[u.Address] = u.Why
	}
	all := b.all()
	byWorkers := ejected(key, all, ejections)
	for _, address := range all {
		e := Endpoint{Address: address.String(), State: "ok", Used: slices.Contains(b.endpoints, address)}
		if reason, unhealthy := why[address]; unhealthy {
			e.State, e.Why = "unhealthy", Shorten(reason)
		} else if found := byWorkers[e.Address]; len(found) > 0 {
			e.State, e.Why = "ejected", reasons(found)
		}
		if e.State == "ok" {
			well = append(well, e)
		} else {
			failing = append(failing, e)
		}
	}
	for _, address := range b.terminating {
		ending = append(ending, Endpoint{Address: address.String(), State: "terminating", Used: true, Why: "about to end: it gets requests of its sessions only"})
	}
	return slices.Concat(failing, well, ending)
}

// reasons says why workers eject an endpoint.
func reasons(found []Ejection) string {
	var list []string
	avoided := 0
	for _, e := range found {
		if list = append(list, e.Why); e.Avoided {
			avoided++
		}
	}
	slices.Sort(list)
	text := Shorten(strings.Join(slices.Compact(list), "; "))
	if avoided < len(found) {
		text += fmt.Sprintf("; %d of %d workers send requests to it nevertheless, since too many endpoints fail", len(found)-avoided, len(found))
	}
	return text
}
