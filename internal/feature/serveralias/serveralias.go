// Package serveralias gives hosts further names.
package serveralias

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/pcre"
)

var serverAlias = feature.Setting[[]string]{
	Annotation: "server-alias", Parse: parse, OnInvalid: feature.Deny, Risk: feature.High,
	Doc: "Further names for the hosts of the Ingress, separated by commas: names, wildcards (*.example.com stands for any " +
		"number of labels, www.example.* likewise), and regular expressions with a tilde before them.",
}

// Feature is server-alias.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "server_alias",
		Doc:      "Gives hosts further names.",
		Settings: []feature.Declared{serverAlias},
		Route:    func(r *feature.Reader, _ *model.Route) { serverAlias.Get(r) },
		Aliases:  serverAlias.Get,
	}
}

// parse reads a list of aliases. ".example.com" is two, as in NGINX.
func parse(text string) ([]string, error) {
	var aliases []string
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		switch {
		case entry == "":
			continue
		case strings.HasPrefix(entry, "~"):
			pattern, err := pcre.Compile(entry[1:], pcre.Options{Caseless: true})
			if err != nil {
				return nil, fmt.Errorf("the regular expression %q: %w", entry[1:], err)
			}
			aliases = append(aliases, "~"+pattern.Text())
		case strings.HasPrefix(entry, "."):
			aliases = append(aliases, strings.ToLower(entry[1:]), "*"+strings.ToLower(entry))
		default:
			aliases = append(aliases, strings.ToLower(strings.TrimSuffix(entry, ".")))
		}
	}
	if i := slices.IndexFunc(aliases, func(a string) bool { return !isName(a) }); i >= 0 {
		return nil, fmt.Errorf("%q is no name: %w", aliases[i], errAllowed)
	}
	if len(aliases) == 0 {
		return nil, errAllowed
	}
	return aliases, nil
}

var errAllowed = errors.New("allowed are names like www.example.com, *.example.com and www.example.*, " +
	"and a tilde with a regular expression")

// isName tells whether an alias is an expression or a name of letters, digits,
// hyphens and underscores, with a star for its first or last label.
func isName(alias string) bool {
	switch model.KindOfAlias(alias) {
	case model.Regex:
		return true
	case model.Head:
		alias = alias[len("*."):]
	case model.Tail:
		alias = alias[:len(alias)-len(".*")]
	}
	for label := range strings.SplitSeq(alias, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for _, c := range label {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
	}
	return len(alias) <= 253 && alias != model.DefaultHost
}
