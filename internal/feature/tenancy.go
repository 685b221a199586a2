package feature

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Keys that restrict tenants.
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
		Doc: "Allows the annotations with NGINX configuration: configuration-snippet, server-snippet, auth-snippet and modsecurity-snippet. What they may have is in [snippets.md](snippets.md) and [modsecurity.md](modsecurity.md). annotations-risk-level is decided first, and with its default, High, it allows none of them.",
	}
	wordBlocklist = Setting[[]string]{
		Key: "annotation-value-word-blocklist", Parse: List, Scope: ScopeProcess,
		Doc: "Words that annotation values must not contain, separated by commas. The paths of an Ingress with such a value answer 503.",
	}
	strictPathTypes = Setting[bool]{
		Key: "strict-validate-path-type", Default: true, Parse: Bool, Scope: ScopeProcess,
		Doc: "Has the admission webhook refuse Ingresses with a path of type Exact or Prefix that has other characters than letters, digits and /._-. " +
			"If it is false, the webhook only warns. See [admission.md](admission.md).",
	}
)

// An Ownership says who may have a name that an Ingress has already.
type Ownership string

const (
	// SharedHosts lets Ingresses of all namespaces add to a host, as in ingress-nginx.
	SharedHosts Ownership = "shared"
	// NamespaceHosts gives a name to one namespace.
	NamespaceHosts Ownership = "namespace"
)

// HostOwnershipKey is the key of HostOwnership, and HostSharedWithAnnotation the annotation
// of HostSharedWith.
const (
	HostOwnershipKey         = "host-ownership"
	HostSharedWithAnnotation = "host-shared-with"
)

// maxSharedWith is how many namespaces an Ingress may share its hosts with.
const maxSharedWith = 100

var (
	hostOwnership = Setting[Ownership]{
		Key: HostOwnershipKey, Default: SharedHosts, Parse: parseOwnership, OnInvalid: UseStrictest, Scope: ScopeProcess,
		Doc: "Who may have a name that another namespace has already. shared: everyone, as in ingress-nginx. namespace: a name belongs to the " +
			"namespace of the oldest Ingress with it, and so do the names below its wildcards with a certificate. Rules, canaries and aliases of " +
			"other namespaces for that name are refused, unless host-shared-with allows them. Any other value has the effect of namespace. " +
			"In a cluster of many tenants, this is the first key to set: see [host-ownership.md](host-ownership.md).",
	}
	hostSharedWith = Setting[[]string]{
		Annotation: HostSharedWithAnnotation, Parse: parseNamespaces, Scope: ScopeName, Risk: Low,
		Doc: "Namespaces, separated by commas, whose Ingresses may add to the hosts of this Ingress while the key host-ownership is namespace. " +
			"Counts in the namespace that owns the host. On an Ingress of a wildcard, it counts for the names below for which the owner has no Ingress.",
	}
)

// HostOwnership returns who may have a name that an Ingress has already.
func HostOwnership(v Values) Ownership { return hostOwnership.Get(v) }

// HostSharedWith returns the namespaces that an Ingress shares its hosts with.
func HostSharedWith(v Values) []string { return hostSharedWith.Get(v) }

// parseOwnership takes a typo for the strict value: it forbids more, never less.
func parseOwnership(text string) (Ownership, error) {
	switch o := Ownership(text); o {
	case SharedHosts, NamespaceHosts:
		return o, nil
	}
	return NamespaceHosts, fmt.Errorf("must be %s or %s", SharedHosts, NamespaceHosts)
}

var namespaceName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

func parseNamespaces(text string) ([]string, error) {
	list, _ := List(text)
	if len(list) > maxSharedWith {
		return nil, fmt.Errorf("must have at most %d namespaces", maxSharedWith)
	}
	if slices.ContainsFunc(list, func(name string) bool { return !namespaceName.MatchString(name) }) {
		return nil, errors.New("must be names of namespaces, separated by commas")
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

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
	return []AnySetting{crossNamespace, riskLevel, allowSnippets, wordBlocklist, strictPathTypes, noAuthLocations, hostOwnership, hostSharedWith}
}

// AllowsSnippets reports whether the administrator lets snippets of tenants count.
func AllowsSnippets(v Values) bool { return allowSnippets.Get(v) }

// StrictPathTypes reports whether paths of type Exact and Prefix must be plain.
func StrictPathTypes(v Values) bool { return strictPathTypes.Get(v) }

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
