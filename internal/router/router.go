// Package router decides where a request goes as lua/headgate decides it, from
// the same packed units, and says why: which name answered, which route won.
// A test asks both and lets no answer differ.
//
// It knows units and nothing of what they were built from. It does not know
// which features and endpoints the data plane has, so that a unit of a feature
// that is not there, and a backend without endpoints, are fine here.
package router

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/unit"
)

// Settings are what a Router reads from.
type Settings struct {
	// Lookup finds the newest unit of a name. A Router keeps what it decoded
	// until Lookup gives another version, or until it has too much.
	Lookup func(unit.Key) (unit.Unit, bool)
	// HealthPath is where names that nobody has answer 200, empty for nowhere.
	HealthPath string
	// Now is the clock by which patterns of a host that take too long together
	// are given up, as Lua does. With nil they take as long as they do.
	Now func() time.Time
}

// A Router routes. It may be used by many goroutines at once if Lookup may.
type Router struct {
	settings Settings
	mu       sync.Mutex
	// decoded never has more than mostDecoded units.
	decoded map[unit.Key]decoded
}

// mostDecoded bounds the units that are kept, among them those that nobody asks
// for any more. When there are as many, keeping starts anew.
const mostDecoded = 10_000

// decoded is a unit as it is kept: its value, or why it has none.
type decoded struct {
	version string
	value   any
	err     error
}

// New makes a Router.
func New(s Settings) *Router {
	if s.Now == nil {
		s.Now = func() time.Time { return time.Time{} }
	}
	return &Router{settings: s, decoded: map[unit.Key]decoded{}}
}

// A Decision is where a request goes and why.
type Decision struct {
	// Status is what Headgate answers by itself: 404 where no route matches,
	// 301 for a path that only lacks the slash at its end, 503 where a unit is
	// missing or can't be used, 500 where a pattern of the host gave up. It is
	// 0 where a route or a page takes the request.
	Status int
	// Page is set where one of Headgate's own pages answers, whatever the
	// routes are.
	Page Page
	// Name is what answers for the name, its zero value if nothing does.
	Name Name
	// Route is the one that won, or that has the slash: nil if there is none.
	Route *Route
	// Err says what is wrong where Status is 500 or 503.
	Err error
}

// A Page is one that Headgate itself has.
type Page string

// The pages. HealthPage and StatusPage are under names that nobody has;
// StatusPage is for clients on the same machine, and others are answered 403.
const (
	HealthPage Page = "health"
	StatusPage Page = "status"
	// TwinPage sends clients of a host's twin to the host.
	TwinPage Page = "twin"
)

// statusPath is where StatusPage is.
const statusPath = "/nginx_status"

// What Headgate answers by itself.
const (
	redirected    = 301
	notFound      = 404
	internalError = 500
	unavailable   = 503
)

// errMissing is for units that Lookup does not find.
var errMissing = errors.New("there is none")

// Route decides. HostName is as HostName gives it, path as Target does.
func (r *Router) Route(hostName, path string) Decision {
	name, err := r.Name(hostName)
	if err != nil {
		return Decision{Status: unavailable, Err: err}
	}
	d := Decision{Name: name}
	if name.Redirect {
		d.Page = TwinPage
		return d
	}
	h, err := find(r, unit.Key{Kind: unit.Host, Name: name.Host}, decodeHost)
	if err != nil {
		d.Status, d.Err = unavailable, err
		return d
	}
	if name.By == ByDefault {
		if d.Page = r.page(path); d.Page != "" {
			return d
		}
	}
	won, err := h.find(path, r.settings.Now)
	switch {
	case err != nil:
		d.Status, d.Err = internalError, fmt.Errorf("host %s: %w", name.Host, err)
	case won.route == nil:
		d.Status = notFound
	case won.redirect:
		d.Status, d.Route = redirected, won.route
	default:
		d.Route = won.route
	}
	return d
}

func (r *Router) page(path string) Page {
	switch {
	case path == statusPath:
		return StatusPage
	case path == r.settings.HealthPath && path != "":
		return HealthPage
	}
	return ""
}

// find gives a unit as it was decoded. The error wraps errMissing or says why
// the unit can't be used.
func find[Value any](r *Router, key unit.Key, decode func(payload []byte) (Value, error)) (Value, error) {
	var none Value
	u, ok := r.settings.Lookup(key)
	if !ok {
		return none, fmt.Errorf("the unit %s %s: %w", key.Kind, key.Name, errMissing)
	}
	kept, ok := r.kept(key)
	if !ok || kept.version != u.Version {
		value, err := decode(u.Payload)
		if err != nil {
			err = fmt.Errorf("decode the unit %s %s: %w", key.Kind, key.Name, err)
		}
		kept = decoded{version: u.Version, value: value, err: err}
		r.keep(key, kept)
	}
	if kept.err != nil {
		return none, kept.err
	}
	return kept.value.(Value), nil
}

func (r *Router) kept(key unit.Key) (decoded, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.decoded[key]
	return d, ok
}

func (r *Router) keep(key unit.Key, d decoded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.decoded) >= mostDecoded {
		clear(r.decoded)
	}
	r.decoded[key] = d
}
