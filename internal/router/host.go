package router

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/syntax/nginxsyntax"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/pcre"
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

const (
	// patternsBudget is the time that the patterns of one namespace may take for
	// one request: what a bucket holds in lua/headgate/budget.lua.
	patternsBudget = 50 * time.Millisecond
	// longestPath is the maximum length of a path that is compared with patterns
	// that are more than text, as in lua/headgate/path_patterns.lua.
	longestPath = 4095
)

// A failureError says that a pattern failed to decide whether it matches a path.
type failureError struct {
	status int
	err    error
}

func (e *failureError) Error() string { return e.err.Error() }

func (e *failureError) Unwrap() error { return e.err }

// find returns no route if none matches. It returns a *failureError if a pattern reached
// its limit, or those of its namespace took too long, and the next route that matches is
// of the same namespace: that may have weaker access control.
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
	spent := map[string]time.Duration{}
	// failures are the first ones of each namespace, and first is the first of all.
	failures := map[string]won{}
	errs := map[string]*failureError{}
	var first won
	var firstErr *failureError
	for _, route := range h.patterns {
		namespace := route.Origin.Namespace
		began := now()
		matches, err := matchPattern(route.Path, path, spent[namespace])
		spent[namespace] += now().Sub(began)
		switch {
		case err != nil:
			err.err = fmt.Errorf("match %s: %w", route.Path, err.err)
			if _, known := errs[namespace]; !known {
				failures[namespace], errs[namespace] = won{route: route}, err
			}
			if firstErr == nil {
				first, firstErr = won{route: route}, err
			}
		case matches:
			if err, failing := errs[namespace]; failing {
				return failures[namespace], err
			}
			return won{route: route}, nil
		}
	}
	if firstErr != nil {
		return first, firstErr
	}
	return won{}, nil
}

// matchPattern compares a path with a pattern. spent is what those of the same
// namespace before it took.
func matchPattern(text, path string, spent time.Duration) (bool, *failureError) {
	if plain, ok := plainText(text); ok {
		return len(path) >= len(plain) && nginxsyntax.LowerASCII(path[:len(plain)]) == nginxsyntax.LowerASCII(plain), nil
	}
	if len(path) > longestPath {
		return false, &failureError{tooLong, fmt.Errorf("paths of more than %d bytes are not compared with regular expressions", longestPath)}
	}
	if spent > patternsBudget {
		return false, &failureError{unavailable, fmt.Errorf("the patterns of the same namespace before it took too long: %w", pcre.ErrLimit)}
	}
	pattern, err := load(text)
	if err != nil {
		return false, &failureError{internalError, err}
	}
	matches, err := pattern.Match(path)
	if err != nil {
		return false, &failureError{internalError, err}
	}
	return matches, nil
}

// plainText returns the text of a pattern that is "^" and plain text, as in
// lua/headgate/path_patterns.lua.
func plainText(pattern string) (text string, ok bool) {
	text, ok = strings.CutPrefix(pattern, "^")
	for i := range len(text) {
		c := text[i]
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("/_~!@#%&=:;,<>'\"`-", c) < 0 {
			return "", false
		}
	}
	return text, ok
}
