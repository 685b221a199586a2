package check

import (
	"net/netip"
	"strings"
)

// State is that of all checks.
type State struct {
	// Succeeded and Failed are numbers of checks.
	Succeeded, Failed int64
	Services          []ServiceState
}

// A ServiceState has the numbers of endpoints of a Service that are checked and of those that
// are unhealthy.
type ServiceState struct {
	Namespace, Service string
	Checked, Unhealthy int
}

// State returns that of now. Services are in no order. An endpoint counts once, even if
// several backends of the Service have it.
func (s *Source) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	type service struct{ namespace, name string }
	checked := map[service]map[netip.AddrPort]bool{} // and whether it is unhealthy
	for key, b := range s.backends {
		_, rest, _ := strings.Cut(key, "/")
		name, _, _ := strings.Cut(rest, "/")
		of := checked[service{b.Namespace, name}]
		if of == nil {
			of = map[netip.AddrPort]bool{}
			checked[service{b.Namespace, name}] = of
		}
		for t := range b.targets {
			_, unhealthy := s.unhealthy[t]
			of[t.endpoint] = of[t.endpoint] || unhealthy
		}
	}
	state := State{Succeeded: s.succeeded.Load(), Failed: s.failed.Load()}
	for of, endpoints := range checked {
		one := ServiceState{Namespace: of.namespace, Service: of.name, Checked: len(endpoints)}
		for _, unhealthy := range endpoints {
			if unhealthy {
				one.Unhealthy++
			}
		}
		state.Services = append(state.Services, one)
	}
	return state
}
