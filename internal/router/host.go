package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/pcre"
)

// A Route is one of a host's, as its unit has it. It must not be changed.
type Route struct {
	// Index is the route's place in the unit, from 0.
	Index int
	Kind  model.PathKind
	// Path is as model.Route has it. A pattern's is the text to match by.
	Path string
	// Slash is set where a Prefix was written with a slash at its end.
	Slash bool
	// Denied is set where the route answers 503.
	Denied bool
	// Backend is the key of the backend, empty for the built-in default one, and
	// Fallback that of the one that is asked where it has no endpoint.
	Backend, Fallback string
	// Default is set where Backend is the default backend.
	Default bool
	// Location is the name of the location of its profile and mode.
	Location string
	// Origin names the Ingress, its zero value if none asked for the route.
	Origin model.Origin
}

// A host is its routes by how they are found.
type host struct {
	exact, itself, below map[string]won
	// lengths are those of the paths in below, the longest first.
	lengths  []int
	root     won
	patterns []hostPattern // if there is one, nothing else counts
}

// won is a route that wins, and whether its request goes to the path with a
// slash first.
type won struct {
	route    *Route
	redirect bool
}

type hostPattern struct {
	pattern
	route *Route
}

// packedHost is a host's payload, of which routes name the parts by numbers
// from 1.
type packedHost struct {
	Backends  []string
	Locations []string
	Policies  []json.RawMessage
	Origins   [][2]string
	Routes    *[]packedRoute
}

type packedRoute struct {
	Exact, Prefix, Pattern              string
	Slash, Denied, Default, Relative    bool
	Mode                                string
	Backend, Fallback, Location, Origin int
	Policies                            []int
}

func decodeHost(payload []byte) (*host, error) {
	var packed packedHost
	if err := json.Unmarshal(payload, &packed); err != nil {
		return nil, err
	}
	if packed.Routes == nil {
		return nil, errors.New("a host without routes")
	}
	h := &host{exact: map[string]won{}, itself: map[string]won{}, below: map[string]won{}}
	for i, p := range *packed.Routes {
		route, err := packed.route(p)
		if err != nil {
			return nil, fmt.Errorf("route %d: %w", i, err)
		}
		route.Index = i
		h.add(route)
	}
	for path := range h.below {
		h.lengths = append(h.lengths, len(path))
	}
	slices.Sort(h.lengths)
	h.lengths = slices.Compact(h.lengths)
	slices.Reverse(h.lengths)
	return h, nil
}

func (h *packedHost) route(p packedRoute) (*Route, error) {
	r := &Route{
		Slash: p.Slash, Denied: p.Denied, Default: p.Default,
		Backend: member(h.Backends, p.Backend), Fallback: member(h.Backends, p.Fallback), Location: member(h.Locations, p.Location),
	}
	switch {
	case p.Exact != "":
		r.Kind, r.Path = model.Exact, p.Exact
	case p.Prefix != "":
		r.Kind, r.Path = model.Prefix, p.Prefix
	case p.Pattern != "":
		r.Kind, r.Path = model.Pattern, p.Pattern
	default:
		return nil, errors.New("it has no path")
	}
	if r.Location == "" {
		return nil, errors.New("its location is not there")
	}
	for _, number := range p.Policies {
		if number < 1 || number > len(h.Policies) {
			return nil, errors.New("a policy is not there")
		}
	}
	origin := member(h.Origins, p.Origin)
	r.Origin = model.Origin{Namespace: origin[0], Ingress: origin[1]}
	return r, nil
}

// member is the one with that number, from 1, the zero value if there is none.
func member[T any](of []T, number int) (found T) {
	if number > 0 && number <= len(of) {
		found = of[number-1]
	}
	return found
}

// add puts a route where it is found. Of "/foo" and "/foo/" the second has
// what lies below, and the first what is left: "/foo" itself. An Exact "/foo/"
// redirects "/foo" there too, as in NGINX.
func (h *host) add(r *Route) {
	switch {
	case r.Kind == model.Pattern:
		h.patterns = append(h.patterns, hostPattern{newPattern(r.Path), r})
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

// redirect has a route redirect a path to that with a slash, unless one answers
// for the path itself.
func (h *host) redirect(path string, r *Route) {
	if _, taken := h.itself[path]; !taken {
		h.itself[path] = won{route: r, redirect: true}
	}
}

// What the patterns of a host may take together, and after how many of them
// that is looked at, as in lua/headgate/host.lua.
const (
	patternsBudget = 100 * time.Millisecond
	patternsStride = 16
)

// find gives no route if none matches. An error is for a pattern that gave up,
// or for all that took too long together: the next route may be one that guards
// less.
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
	for _, length := range h.lengths {
		if length < len(path) && path[length] == '/' {
			if found, ok := h.below[path[:length]]; ok {
				return found, nil
			}
		}
	}
	return h.root, nil
}

func (h *host) findPattern(path string, now func() time.Time) (won, error) {
	var spent time.Duration
	for i, p := range h.patterns {
		// What it takes to compile at the first match counts for nothing. What is
		// wrong with the pattern, the match tells.
		_, _ = p.compiled()
		began := now()
		matches, err := p.match(path)
		spent += now().Sub(began)
		if matches || err != nil {
			return won{route: p.route}, err
		}
		if (i+1)%patternsStride == 0 && spent > patternsBudget {
			return won{route: p.route}, fmt.Errorf("match %s: the patterns before it took too long: %w", p.text, pcre.ErrLimit)
		}
	}
	return won{}, nil
}
