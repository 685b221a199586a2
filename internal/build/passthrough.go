package build

import (
	"fmt"
	"slices"

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
	case spec.IsManyNames(l.host):
		return refuse("TLS passthrough needs a host without a wildcard")
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

// reportBypassed reports what TLS connections don't get: the settings of the route, those
// that may control access first, and the other paths.
func (l *hostBuilder) reportBypassed(by feature.AnySetting, route *routeCandidate, out *feature.HostOut) {
	var guards, others []string
	for _, p := range l.contributions {
		if spec.Origin(p.Ingress) == route.Origin {
			guards, others = l.bypassed(p, by)
		}
	}
	if len(guards) > 0 {
		out.Warn(by, finding.Bypassed, fmt.Sprintf("access control by annotations does not apply to TLS connections: %s", feature.ShortenList(slices.Concat(guards, others))),
			"over TLS, clients reach the backend without it")
	} else if len(others) > 0 {
		out.Warn(by, finding.Bypassed, fmt.Sprintf("other annotations do not apply to TLS connections: %s", feature.ShortenList(others)),
			"they apply to requests over http alone")
	}
	if n := len(l.routes) - 1; n > 0 {
		out.Warn(by, finding.Bypassed, fmt.Sprintf("all TLS connections go to the backend of the path /, and the host has other paths: %d", n),
			"they are served over http alone")
	}
}

// bypassed are the annotations of an Ingress that don't apply, without their prefix: those
// whose bad values deny, and the others.
func (l *hostBuilder) bypassed(p *contribution, by feature.AnySetting) (guards, others []string) {
	for _, f := range l.builder.features {
		for _, s := range f.Settings {
			d := s.Spec()
			switch {
			case d.Annotation == "" || d.Annotation == by.Spec().Annotation || d.Scope != feature.ScopeRoute && d.Scope != feature.ScopeHost || !p.Uses(s):
			case d.OnInvalid == feature.UseDefault:
				others = append(others, d.Annotation)
			default:
				guards = append(guards, d.Annotation)
			}
		}
	}
	return guards, others
}
