// Package dns is the source of addresses of DNS names: it looks up the names of
// its subscriptions, and delivers the addresses as objects.
//
// It knows resolv.conf(5), hosts(5) and DNS. It must not know what names are
// for. Names are resolved as by the C library: /etc/hosts first, then the name
// servers with the search domains, A before AAAA, and AAAA only if there is no A.
//
// A name is looked up again when its time to live ends, and at no other time. A
// lookup that fails is repeated soon, and then less often. A name that is added
// again is looked up at once. While no resolver can resolve a name, its last
// addresses stay, for a day at most.
package dns

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate/internal/source/follow"
)

// Settings are those of lookups.
type Settings struct {
	// ResolvConf and Hosts are the paths of the system's files, which are read
	// for each lookup. A missing file counts as empty.
	ResolvConf, Hosts string
	// Port is the name servers' port, 53 if 0.
	Port uint16
	// AllowLocal delivers loopback, link-local and unspecified addresses as
	// usable ones, and not as refused ones.
	AllowLocal bool
	Log        *slog.Logger
}

// System returns the settings of the operating system.
func System(allowLocal bool, log *slog.Logger) Settings {
	return Settings{ResolvConf: "/etc/resolv.conf", Hosts: "/etc/hosts", AllowLocal: allowLocal, Log: log}
}

// atOnce is the number of lookups at a time. One that no server answers takes
// seconds.
var atOnce = follow.Slots{Known: 128, New: 64, Failed: 16}

// A Source looks up names.
type Source struct {
	follow.Source[string]
	settings Settings
}

// New makes a Source.
func New(settings Settings) *Source {
	return &Source{follow.NewSource[string]("dns", atOnce, settings.Log), settings}
}

// Subscribe adds and removes names to look up. The channel is closed once each of
// the added names was looked up and the result is delivered. A name that ends in
// a dot is absolute.
func (s *Source) Subscribe(added, removed []string) (delivered <-chan struct{}) {
	return s.Source.Subscribe(added, removed, func(name string) follow.Job { return &lookups{source: s, name: name} })
}

// lookups are those of one name.
type lookups struct {
	source  *Source
	name    string
	history history
}

// Owner is the name: names wait for slots alone.
func (l *lookups) Owner() string { return l.name }

// Fetch looks the name up.
func (l *lookups) Fetch(ctx context.Context) follow.Answer {
	found := l.source.lookup(ctx, l.name, l.history.from)
	object, pause := l.history.record(l.name, found, time.Now())
	if !l.source.settings.AllowLocal {
		object.Addresses, object.Refused = sortOut(object.Addresses)
	}
	answer := follow.Answer{Object: object, Pause: pause}
	if l.history.failures > 0 {
		// Lookups that failed at the same time are not repeated at the same time.
		answer.Pause += rand.N(pause / 4)
		answer.Err = errors.Join(errors.New(object.Problem), found.err)
	}
	return answer
}
