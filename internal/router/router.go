// Package router routes requests as lua/headgate does, from the same packed
// units, and returns the reasons: which name matched, which route won. A test
// compares both and tolerates no difference.
//
// It knows units, and nothing of the objects that they were built from. It does
// not know which features and endpoints the data plane has, so a unit with an
// unknown feature, and a backend without endpoints, are valid here.
package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/unit"
)

// Settings are the input of a Router.
type Settings struct {
	// Lookup finds the newest unit of a name.
	Lookup func(unit.Key) (unit.Unit, bool)
	// HealthPath is the path of the health check for unknown names. Empty means none.
	HealthPath string
	// Now is the clock for the time limit of a host's patterns, as in Lua. Without
	// it, there is no limit.
	Now func() time.Time
}

// A Router routes requests. Several goroutines may use it if Lookup allows that.
type Router struct{ settings Settings }

// New returns a Router.
func New(s Settings) *Router {
	if s.Now == nil {
		s.Now = func() time.Time { return time.Time{} }
	}
	return &Router{settings: s}
}

// A Decision is where a request goes, and why.
type Decision struct {
	// Status is that of a response by Headgate: 404 if no route matches, 301 for a
	// path that only lacks the slash at its end, 503 if a unit is missing or can't
	// be used, 500 if a pattern of the host reached its limit. It is 0 if a route
	// or a page gets the request.
	Status int
	// Page is set if a built-in page responds, regardless of routes.
	Page Page
	// Name is the name that matched, or zero.
	Name Name
	// Route is the one that won, or the one with the slash, or nil.
	Route *Route
	// Err is the error if Status is 500 or 503.
	Err error
}

// A Page is a built-in page.
type Page string

// The pages. HealthPage and StatusPage exist for unknown names only; StatusPage
// answers 403 to clients that are not on the same machine.
const (
	HealthPage Page = "health"
	StatusPage Page = "status"
	// WWWRedirectPage redirects clients of a www redirect alias to its host.
	WWWRedirectPage Page = "www redirect"
)

const statusPath = "/nginx_status"

// The status codes of responses by Headgate.
const redirected, notFound, tooLong, internalError, unavailable = 301, 404, 414, 500, 503

// errMissing is for units that Lookup does not find.
var errMissing = errors.New("not found")

var errNoHost = errors.New("the name has no host")

// Route routes a request. hostName is the result of HostName, path that of Target.
func (r *Router) Route(hostName, path string) Decision {
	name, err := r.Name(hostName)
	if err != nil {
		return Decision{Status: unavailable, Err: err}
	}
	d := Decision{Name: name}
	if name.Redirect {
		d.Page = WWWRedirectPage
		return d
	}
	h, err := find(r, unit.Host.Key(name.Host), newHost)
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
	failure := (*failureError)(nil)
	switch {
	case errors.As(err, &failure):
		d.Status, d.Err = failure.status, fmt.Errorf("host %s: %w", name.Host, err)
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

// find decodes the payload of a unit. The error wraps errMissing, or says why the
// unit can't be used.
func find[Payload, Value any](r *Router, key unit.Key, decode func(Payload) (Value, error)) (value Value, err error) {
	u, ok := r.settings.Lookup(key)
	if !ok {
		return value, fmt.Errorf("the unit %s %s: %w", key.Kind, key.Name, errMissing)
	}
	var payload Payload
	if err = json.Unmarshal(u.Payload, &payload); err == nil {
		value, err = decode(payload)
	}
	if err != nil {
		return value, fmt.Errorf("decode the unit %s %s: %w", key.Kind, key.Name, err)
	}
	return value, nil
}
