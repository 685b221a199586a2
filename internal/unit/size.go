package unit

import "github.com/headgate/headgate/internal/model"

// routeBytes are about what a route takes in the payload besides its path.
const routeBytes = 60

// A HostSize adds up how long the payload of a host becomes: what routes have in common
// counts once, as in FromHost, and numbers count as if they all had the same length.
type HostSize struct {
	bytes  int
	listed map[string]struct{}
}

// Add adds a route. It is false, and has no effect, if the payload becomes longer than
// most bytes.
func (s *HostSize) Add(r model.Route, most int) bool {
	bytes := s.bytes + routeBytes + len(encode(r.Path))
	lists := []string{r.Backend, r.Fallback, r.Profile.Location(r.Variant), r.Origin.Namespace + "/" + r.Origin.Ingress}
	for _, p := range r.Policies {
		lists = append(lists, string(encodePolicy(p)))
	}
	for _, text := range lists {
		if _, known := s.listed[text]; !known {
			bytes += len(text) + len(`"",`)
		}
	}
	if bytes > most {
		return false
	}
	if s.listed == nil {
		s.listed = map[string]struct{}{}
	}
	for _, text := range lists {
		s.listed[text] = struct{}{}
	}
	s.bytes = bytes
	return true
}

// AddCanary does the same for a canary, which its route has in a list of its own.
func (s *HostSize) AddCanary(c model.Canary, most int) bool {
	bytes := s.bytes + len(encode(c)) + routeBytes
	if bytes > most {
		return false
	}
	s.bytes = bytes
	return true
}
