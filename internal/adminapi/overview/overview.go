// Package overview keeps what is served in a form that can be searched and shown in parts: hosts
// with their routes, backends with their endpoints, and certificates with their dates.
//
// The controller hands in what it builds. The package keeps no keys, and none of the data of
// Secrets but certificates' names and dates. It must not know who looks at it.
package overview

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// A Table has what is served. Its methods may be called from several goroutines; Set also on
// nil, which keeps nothing.
type Table struct {
	mu       sync.Mutex
	hosts    map[string]*host
	backends map[string]*backend
	names    map[string]name
	// aliases are the names of a host other than its own.
	aliases map[string]map[string]struct{}
	// certificates are those that names show.
	certificates map[certificateID]*certificate
	// fallback is the default certificate.
	fallback certificateID
	// These are the keys of hosts and backends in order, nil if they have changed.
	sortedHosts, sortedBackends []string
}

// A host is what is kept of one.
type host struct {
	namespace   string
	passthrough string
	routes      []Route
}

// A name is what is kept of one.
type name struct {
	host, owner string
	redirect    bool
	tls         bool
	certificate certificateID
}

// New returns an empty Table.
func New() *Table {
	return &Table{
		hosts: map[string]*host{}, backends: map[string]*backend{}, names: map[string]name{},
		aliases: map[string]map[string]struct{}{}, certificates: map[certificateID]*certificate{},
	}
}

// Set replaces a unit by what was built.
func (t *Table) Set(built unit.Built) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch built.Kind {
	case unit.Host:
		m, found := built.Model.(model.Host)
		t.setHost(built.Name, m, found)
	case unit.Backend:
		m, found := built.Model.(model.Backend)
		t.setBackend(built.Name, m, found)
	case unit.Name:
		m, found := built.Model.(model.Name)
		t.setName(built.Name, m, found, built.Certificates)
	case unit.DefaultCertificate:
		m, _ := built.Model.(model.Certificate)
		t.release(t.fallback, model.DefaultCertificate)
		t.fallback = t.hold(&m, model.DefaultCertificate)
	}
}

func (t *Table) setHost(key string, m model.Host, found bool) {
	if !found {
		delete(t.hosts, key)
		t.sortedHosts = nil
		return
	}
	h := &host{namespace: m.Namespace, passthrough: m.Passthrough, routes: make([]Route, len(m.Routes))}
	for i := range m.Routes {
		h.routes[i] = routeOf(&m.Routes[i])
	}
	if t.hosts[key] == nil {
		t.sortedHosts = nil
	}
	t.hosts[key] = h
}

func (t *Table) setName(key string, m model.Name, found bool, certificates []model.Certificate) {
	was := t.names[key]
	t.release(was.certificate, key)
	delete(t.names, key)
	if delete(t.aliases[was.host], key); len(t.aliases[was.host]) == 0 {
		delete(t.aliases, was.host)
	}
	if !found {
		return
	}
	now := name{host: m.Host, owner: m.Owner, redirect: m.Redirect, tls: m.HasTLS}
	for i := range certificates {
		if certificates[i].Hash == m.Certificate {
			now.certificate = t.hold(&certificates[i], key)
		}
	}
	t.names[key] = now
	if m.Host == key {
		return
	}
	if t.aliases[m.Host] == nil {
		t.aliases[m.Host] = map[string]struct{}{}
	}
	t.aliases[m.Host][key] = struct{}{}
}

// shown is the certificate that clients see for a name, and whether it is the default one: a
// name without one shows that of the wildcard above it, if both have the same owner.
func (t *Table) shown(key string) (id certificateID, fallback bool) {
	n := t.names[key]
	if n.certificate != (certificateID{}) {
		return n.certificate, false
	}
	if _, parent, ok := strings.Cut(key, "."); ok {
		if above := t.names["*."+parent]; above.certificate != (certificateID{}) && above.owner == n.owner {
			return above.certificate, false
		}
	}
	return t.fallback, true
}

// hostNames are the names of all hosts, sorted.
func (t *Table) hostNames() []string {
	if t.sortedHosts == nil {
		t.sortedHosts = slices.Sorted(maps.Keys(t.hosts))
	}
	return t.sortedHosts
}

// backendKeys are the keys of all backends, sorted.
func (t *Table) backendKeys() []string {
	if t.sortedBackends == nil {
		t.sortedBackends = slices.Sorted(maps.Keys(t.backends))
	}
	return t.sortedBackends
}
