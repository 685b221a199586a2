package feature

import (
	"slices"
	"strings"
)

// The keys that restrict tenants.
var (
	crossNamespace = Setting[bool]{
		Key: "allow-cross-namespace-resources", Parse: Bool, Scope: ScopeProcess,
		Doc: "Allows annotations to refer to Secrets and ConfigMaps of other namespaces.",
	}
	riskLevel = Setting[Risk]{
		Key: "annotations-risk-level", Default: High, Parse: parseRisk, Scope: ScopeProcess,
		Doc: "The highest risk that annotations can have. The paths of an Ingress with an annotation of a higher risk answer 503.",
	}
	allowSnippets = Setting[bool]{
		Key: "allow-snippet-annotations", Parse: Bool, Scope: ScopeProcess,
		Doc: "Allows the annotations with NGINX configuration: configuration-snippet, server-snippet, auth-snippet and modsecurity-snippet. None of them is supported yet: where they may control access, the paths of the Ingress answer 503.",
	}
	wordBlocklist = Setting[[]string]{
		Key: "annotation-value-word-blocklist", Parse: List, Scope: ScopeProcess,
		Doc: "Words that annotation values must not contain, separated by commas. The paths of an Ingress with such a value answer 503.",
	}
)

// noAuthLocations is compared with paths of rules, as in ingress-nginx, and not with
// paths of requests: no request can bypass an auth check by its path.
var noAuthLocations = Setting[[]string]{
	Key: "no-auth-locations", Default: []string{"/.well-known/acme-challenge"}, Parse: List,
	Doc: "Path prefixes without authentication: rules whose path begins with one of them ignore auth-type, auth-url and global-auth-url.",
}

// Exempt reports whether routes with a rule's path, as it is written, need no
// authentication, neither by password nor by an auth service. A regular expression after
// an exempt prefix is never exempt: a rewrite could lead its matches to any path of the
// backend.
func Exempt(v Values, path string) bool {
	return slices.ContainsFunc(noAuthLocations.Get(v), func(exempt string) bool {
		rest, ok := strings.CutPrefix(path, exempt)
		return ok && !strings.ContainsAny(rest, `()[]{}|*+?^$\`)
	})
}

// Tenancy are the settings that restrict or exempt tenants.
func Tenancy() []AnySetting {
	return []AnySetting{crossNamespace, riskLevel, allowSnippets, wordBlocklist, noAuthLocations}
}

// AllowsSnippets reports whether the administrator lets snippets of tenants count.
func AllowsSnippets(v Values) bool { return allowSnippets.Get(v) }

// parseRisk takes any text that is not a level for the lowest, as ingress-nginx
// does: a typo forbids more, never less.
func parseRisk(text string) (Risk, error) {
	for risk := Low; risk <= Critical; risk++ {
		if strings.EqualFold(text, risk.String()) {
			return risk, nil
		}
	}
	return Low, nil
}
