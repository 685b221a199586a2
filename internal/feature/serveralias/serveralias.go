// Package serveralias gives hosts further names.
package serveralias

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

const (
	maxAliases     = 1000 // of an Ingress
	maxExpressions = 16   // among them
)

// Feature is server-alias.
func Feature() feature.Feature {
	serverAlias := feature.Setting[[]string]{
		Annotation: "server-alias", Parse: parse, Scope: feature.ScopeName, Risk: feature.High,
		Doc: "Additional names for the hosts of the Ingress, separated by commas. Wildcards (*.example.com or " +
			"www.example.*) and regular expressions (with a leading ~) are supported. The asterisk matches one or more labels. " +
			fmt.Sprintf("At most %d names, of which at most %d are regular expressions.", maxAliases, maxExpressions),
	}
	return feature.Feature{
		Name:     "server_alias",
		Doc:      "Adds names to hosts.",
		Settings: []feature.AnySetting{serverAlias},
		Names: func(v feature.Values, out *feature.NamesOut) {
			out.Aliases, out.AliasesBy = append(out.Aliases, serverAlias.Get(v)...), serverAlias
		},
	}
}

// parse reads a list of aliases. ".example.com" is two, as in NGINX. A text
// without an alias has no effect.
func parse(text string) ([]string, error) {
	var aliases []string
	expressions := 0
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		switch {
		case entry == "":
			continue
		case strings.HasPrefix(entry, "~"):
			if expressions++; expressions > maxExpressions {
				return nil, fmt.Errorf("must have at most %d regular expressions", maxExpressions)
			}
			if _, err := pcre.Compile(entry[1:], pcre.Options{Caseless: true}); err != nil {
				return nil, fmt.Errorf("the regular expression %q: %w", finding.Shorten(entry[1:]), err)
			}
			aliases = append(aliases, entry)
		case strings.HasPrefix(entry, "."):
			aliases = append(aliases, strings.ToLower(entry[1:]), "*"+strings.ToLower(entry))
		default:
			aliases = append(aliases, strings.ToLower(strings.TrimSuffix(entry, ".")))
		}
		if len(aliases) > maxAliases {
			return nil, fmt.Errorf("must have at most %d aliases", maxAliases)
		}
	}
	if i := slices.IndexFunc(aliases, func(a string) bool { return !isName(a) }); i >= 0 {
		return nil, fmt.Errorf("%q is not a name: %w", finding.Shorten(aliases[i]), errAllowed)
	}
	return aliases, nil
}

var errAllowed = errors.New("must be names like www.example.com, *.example.com and www.example.*, " +
	"or a tilde with a regular expression")

// isName reports whether an alias is an expression or a name of letters, digits,
// hyphens and underscores, with a star for its first or last label.
func isName(alias string) bool {
	switch model.KindOfAlias(alias) {
	case model.Regex:
		return true
	case model.LeadingWildcard:
		alias = alias[len("*."):]
	case model.TrailingWildcard:
		alias = alias[:len(alias)-len(".*")]
	}
	for label := range strings.SplitSeq(alias, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return len(alias) <= 253 && alias != model.DefaultHost
}
