package model

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ParameterNames are names of FastCGI parameters in nginx.conf, which the administrator wrote.
type ParameterNames struct{ names string }

var parameterForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// maxParameterNames bounds them: each request to a FastCGI backend asks for the values of all.
const maxParameterNames = 64

// NewParameterNames takes names that differ by more than case, as those of variables must, and
// that are not made from headers.
func NewParameterNames(names ...string) (ParameterNames, error) {
	seen := map[string]bool{}
	for _, name := range names {
		lower := strings.ToLower(name)
		if !parameterForm.MatchString(name) || strings.HasPrefix(lower, "http_") || seen[lower] {
			return ParameterNames{}, fmt.Errorf("%q: must be a letter and at most 63 letters, digits and underscores, must not begin with HTTP_, and must differ from the others by more than case", name)
		}
		seen[lower] = true
	}
	if len(names) > maxParameterNames {
		return ParameterNames{}, fmt.Errorf("must be at most %d names", maxParameterNames)
	}
	return ParameterNames{strings.Join(slices.Sorted(slices.Values(names)), " ")}, nil
}

// Names are the names, sorted.
func (p ParameterNames) Names() []string { return strings.Fields(p.names) }

func (p ParameterNames) String() string { return strings.Join(p.Names(), ",") }
