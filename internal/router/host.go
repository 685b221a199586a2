package router

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/pcre"
	"github.com/headgate/headgate/internal/unit"
)

// A Route is a route of a host, as far as its unit says. It must not be changed.
type Route struct {
	model.Route
	// Index is the index of the route in the unit, from 0.
	Index int
	// Location is the name of the location of its profile and variant.
	Location string
}

type host struct {
	exact, itself, below map[string]won
	root                 won
	patterns             []*Route // if there is one, nothing else counts
}

// won is a route that matches. redirect is set if it redirects the path to the
// one with a slash.
type won struct {
	route    *Route
	redirect bool
}

func newHost(packed unit.PackedHost) (*host, error) {
	if packed.Routes == nil {
		return nil, errors.New("the host has no routes")
	}
	h := &host{exact: map[string]won{}, itself: map[string]won{}, below: map[string]won{}}
	for i, p := range packed.Routes {
		route, err := newRoute(packed, p)
		if err != nil {
			return nil, fmt.Errorf("route %d: %w", i, err)
		}
		route.Index = i
		h.add(route)
	}
	return h, nil
}

func newRoute(h unit.PackedHost, p unit.PackedRoute) (*Route, error) {
	r := &Route{Location: member(h.Locations, p.Location)}
	r.Slash, r.Denied, r.Default = p.Slash, p.Denied, p.Default
	r.Backend, r.Fallback = member(h.Backends, p.Backend), member(h.Backends, p.Fallback)
	switch {
	case p.Exact != "":
		r.Kind, r.Path = model.Exact, p.Exact
	case p.Prefix != "":
		r.Kind, r.Path = model.Prefix, p.Prefix
	case p.Pattern != "":
		r.Kind, r.Path = model.Pattern, p.Pattern
	default:
		return nil, errors.New("the path is missing")
	}
	if r.Location == "" {
		return nil, errors.New("the location is missing")
	}
	for _, number := range p.Policies {
		if number < 1 || number > len(h.Policies) {
			return nil, errors.New("a policy is missing")
		}
	}
	origin := member(h.Origins, p.Origin)
	r.Origin = model.Origin{Namespace: origin[0], Ingress: origin[1]}
	return r, nil
}

// member returns the element with a number, from 1, or zero if there is none.
func member[T any](of []T, number int) (found T) {
	if number > 0 && number <= len(of) {
		found = of[number-1]
	}
	return found
}

// add adds a route to the search. Of "/foo" and "/foo/" the second one matches
// paths below, and the first one only "/foo" itself. An Exact "/foo/" also
// redirects "/foo", as in NGINX.
func (h *host) add(r *Route) {
	switch {
	case r.Kind == model.Pattern:
		h.patterns = append(h.patterns, r)
	case r.Kind == model.Exact:
		h.exact[r.Path] = won{route: r}
		if bare := strings.TrimSuffix(r.Path, "/"); bare != r.Path && bare != "" {
			h.redirect(bare, r)
		}
	case r.Path == "/":
		if h.root.route == nil {
			h.root = won{route: r}
		}
	case r.Slash:
		h.below[r.Path] = won{route: r}
		h.redirect(r.Path, r)
	default:
		if _, taken := h.below[r.Path]; !taken {
			h.below[r.Path] = won{route: r}
		}
		h.itself[r.Path] = won{route: r}
	}
}

// redirect makes a route redirect a path to the one with a slash, unless a route
// matches the path itself.
func (h *host) redirect(path string, r *Route) {
	if _, taken := h.itself[path]; !taken {
		h.itself[path] = won{route: r, redirect: true}
	}
}

// The time that the patterns of a host may take together, and the number of
// patterns after which it is checked, as in lua/headgate/host.lua.
const (
	patternsBudget = 100 * time.Millisecond
	patternsStride = 16
)

// find returns no route if none matches. It returns an error if a pattern reached
// its limit, or all patterns together took too long: the next route may have
// weaker access control.
func (h *host) find(path string, now func() time.Time) (won, error) {
	if len(h.patterns) > 0 {
		return h.findPattern(path, now)
	}
	if found, ok := h.exact[path]; ok {
		return found, nil
	}
	if found, ok := h.itself[path]; ok {
		return found, nil
	}
	for i := len(path) - 1; i > 0; i-- {
		if path[i] == '/' {
			if found, ok := h.below[path[:i]]; ok {
				return found, nil
			}
		}
	}
	return h.root, nil
}

func (h *host) findPattern(path string, now func() time.Time) (won, error) {
	var spent time.Duration
	for i, route := range h.patterns {
		pattern, err := load(route.Path)
		matches, began := false, now()
		if err == nil {
			matches, err = pattern.Match(path)
		}
		if spent += now().Sub(began); err == nil && !matches && (i+1)%patternsStride == 0 && spent > patternsBudget {
			err = fmt.Errorf("the patterns before it took too long: %w", pcre.ErrLimit)
		}
		if err != nil {
			return won{route: route}, fmt.Errorf("match %s: %w", route.Path, err)
		}
		if matches {
			return won{route: route}, nil
		}
	}
	return won{}, nil
}
