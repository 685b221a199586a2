package routing

import (
	"fmt"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
)

const servedByNGINX = "TLS connections for the host are not passed through"

// passthrough is the key of the backend that TLS connections for the host are passed through
// to, empty if they are not. It reports why they are not though a setting asks for it, and
// what does not apply to them if they are. Where the path "/" is denied, NGINX answers.
func (l *hostBuilder) passthrough(denied bool, out *feature.HostOut) string {
	by := out.Passthrough
	if by == nil {
		return ""
	}
	refuse := func(message string) string {
		out.Warn(by, finding.NotSupported, message, servedByNGINX)
		return ""
	}
	route := l.rootRoute()
	switch {
	case !l.view.Passthrough():
		return refuse("TLS passthrough needs --enable-ssl-passthrough")
	case route == nil:
		return refuse("TLS passthrough needs the path /, and the host has no rule for it")
	case denied || route.Denied:
		return ""
	}
	l.reportBypassed(by, route, out)
	return route.Backend
}

// rootRoute is the one for the path "/" that a rule has, nil if none has.
func (l *hostBuilder) rootRoute() (found *routeCandidate) {
	for i, r := range l.routes {
		if r.field != "" && (r.where == root || r.where == exactRoot && found == nil) {
			found = &l.routes[i]
		}
	}
	return found
}

// reportBypassed reports what TLS connections don't get: the settings of the route that may
// control access, and the other paths.
func (l *hostBuilder) reportBypassed(by feature.AnySetting, route *routeCandidate, out *feature.HostOut) {
	var guards []string
	for _, p := range l.contributions {
		if spec.Origin(p.Ingress) == route.Origin {
			guards = l.guards(p, by)
		}
	}
	if len(guards) > 0 {
		out.Warn(by, finding.Bypassed, "annotations that may control access do not apply to TLS connections: "+finding.ShortenList(guards),
			"over TLS, clients reach the backend without them")
	}
	if n := len(l.routes) - 1; n > 0 {
		out.Warn(by, finding.Bypassed, fmt.Sprintf("all TLS connections go to the backend of the path /, and the host has %d more: these need a host of their own", n),
			"these are served over http alone")
	}
}

// guards are the annotations of an Ingress for requests, without their prefix, whose bad
// values deny.
func (l *hostBuilder) guards(p *contribution, by feature.AnySetting) (list []string) {
	for _, f := range l.builder.features {
		for _, s := range f.Settings {
			d := s.Spec()
			isOfRequests := d.Annotation != "" && (d.Scope == feature.ScopeRoute || d.Scope == feature.ScopeHost)
			if isOfRequests && d.OnInvalid != feature.UseDefault && d.Annotation != by.Spec().Annotation && p.Uses(s) {
				list = append(list, d.Annotation)
			}
		}
	}
	return list
}
