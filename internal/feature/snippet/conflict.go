package snippet

import (
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/snippet/program"
)

// withoutConflicts leaves out the location blocks of a host that are the location of a rule:
// NGINX does not start with two that are equal.
func withoutConflicts(locations []program.Location, out *feature.HostOut) []program.Location {
	ofRules := map[string]bool{}
	for _, r := range out.Routes {
		for _, written := range locationsOf(r, out.Patterns) {
			ofRules[written] = true
		}
	}
	var kept []program.Location
	for _, l := range locations {
		match := l.Match
		if match == "^~" {
			match = ""
		}
		if !ofRules[match+" "+l.Path] {
			kept = append(kept, l)
			continue
		}
		message := fmt.Sprintf("the Ingresses of the host have a rule with the location %q already", finding.Shorten(strings.TrimSpace(l.Match+" "+l.Path)))
		if refuses(l.Program) {
			out.Deny(serverSnippet, finding.Conflict, message)
		} else {
			out.Warn(serverSnippet, finding.Conflict, message, "the location block has no effect; use configuration-snippet")
		}
	}
	return kept
}

// locationsOf are those that ingress-nginx makes of a route, as modifier, space and path.
func locationsOf(r *model.Route, patterns bool) []string {
	if patterns {
		return nil
	}
	switch {
	case r.Kind == model.Exact:
		return []string{"= " + r.Path}
	case r.Path == "/":
		return []string{" /"}
	case r.Slash:
		return []string{" " + r.Path + "/"}
	}
	return []string{" " + r.Path + "/", "= " + r.Path}
}

// refuses reports whether a program refuses requests, so that they must not be answered without it.
func refuses(p program.Program) bool {
	for _, e := range p.Effects {
		if len(e.Rules) > 0 || e.Methods != nil {
			return true
		}
	}
	for _, l := range p.Locations {
		if l.Internal || refuses(l.Program) {
			return true
		}
	}
	return refusesIn(p.Steps)
}

func refusesIn(steps []program.Step) bool {
	for _, s := range steps {
		if s.Return >= 400 || refusesIn(s.Then) {
			return true
		}
	}
	return false
}
