package feature

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// The keys by which an administrator says what tenants may do.
var (
	crossNamespace = Setting[bool]{
		Key: "allow-cross-namespace-resources", Parse: Bool,
		Doc: "Allows annotations to refer to Secrets and ConfigMaps of other namespaces.",
	}
	riskLevel = Setting[Risk]{
		Key: "annotations-risk-level", Default: High, Parse: parseRisk,
		Doc: "The highest risk of annotations that is allowed. The paths of an Ingress with an annotation of a higher risk answer 503.",
	}
	wordBlocklist = Setting[[]string]{
		Key: "annotation-value-word-blocklist", Parse: List,
		Doc: "Words that annotation values must not contain, separated by commas. The paths of an Ingress with such a value answer 503.",
	}
)

// noAuthLocations is compared with paths of rules, as the predecessor does, and
// not with those of requests: no request gets around a guard by its path.
var noAuthLocations = Setting[[]string]{
	Key: "no-auth-locations", Default: []string{"/.well-known/acme-challenge"}, Parse: List,
	Doc: "Path prefixes without authentication: rules whose path begins with one of them ignore auth-type, auth-url and global-auth-url.",
}

// Exempt tells whether nobody has to say who he is on the route: neither by a
// password nor to another service.
func Exempt(r *Reader, route *model.Route) bool {
	path := route.Path
	if route.Slash {
		path += "/"
	}
	return ExemptPath(r, path)
}

// ExemptPath tells the same of a rule's path as it is written. What goes on as
// a regular expression is never exempt: a rewrite could carry what it finds to
// any path of the backend.
func ExemptPath(r *Reader, path string) bool {
	return slices.ContainsFunc(noAuthLocations.Get(r), func(exempt string) bool {
		rest, ok := strings.CutPrefix(path, exempt)
		return ok && !strings.ContainsAny(rest, `()[]{}|*+?^$\`)
	})
}

// Tenancy are the settings by which an administrator says what tenants may do,
// or need not do. They belong to no single feature.
func Tenancy() []Declared {
	return []Declared{crossNamespace, riskLevel, wordBlocklist, noAuthLocations}
}

// parseRisk takes any text that is no level for the lowest, as the predecessor
// does: a slip of the pen forbids more, never less.
func parseRisk(text string) (Risk, error) {
	for risk := Low; risk <= Critical; risk++ {
		if strings.EqualFold(text, risk.String()) {
			return risk, nil
		}
	}
	return Low, nil
}

// Police denies the routes of an Ingress whose annotations go beyond what the
// administrator allows. Risks has the risk of each annotation by its whole
// name.
func (r *Reader) Police(risks map[string]Risk) {
	most, words := riskLevel.Get(r), wordBlocklist.Get(r)
	forbid := func(name, message string) {
		r.forbidden = true
		r.note(name, finding.NotAllowed, message, Deny)
	}
	for name, text := range r.annotations {
		if !strings.HasPrefix(name, r.prefix) {
			continue
		}
		if risk := risks[name]; risk > most {
			forbid(name, fmt.Sprintf("its risk is %s, and the key %s allows at most %s", risk, riskLevel.Key, most))
		}
		for _, word := range words {
			if strings.Contains(text, word) {
				forbid(name, fmt.Sprintf("its value holds %q, which the key %s forbids", cut(word, mostValue), wordBlocklist.Key))
				break
			}
		}
	}
}
