package names

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Parameters are names of FastCGI parameters in nginx.conf, which the administrator wrote.
type Parameters struct{ names string }

var parameterForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// maxParameterNames bounds them: each request to a FastCGI backend asks for the values of all.
const maxParameterNames = 64

// NewParameters takes names that differ by more than case, as those of variables must, and
// that are not made from headers.
func NewParameters(names ...string) (Parameters, error) {
	seen := map[string]bool{}
	for _, name := range names {
		lower := strings.ToLower(name)
		if !parameterForm.MatchString(name) || strings.HasPrefix(lower, "http_") || seen[lower] {
			return Parameters{}, fmt.Errorf("%q: must be a letter and at most 63 letters, digits and underscores, must not begin with HTTP_, and must differ from the others by more than case", name)
		}
		seen[lower] = true
	}
	if len(names) > maxParameterNames {
		return Parameters{}, fmt.Errorf("must be at most %d names", maxParameterNames)
	}
	return Parameters{strings.Join(slices.Sorted(slices.Values(names)), " ")}, nil
}

// Names are the names, sorted.
func (p Parameters) Names() []string { return strings.Fields(p.names) }

func (p Parameters) String() string { return strings.Join(p.Names(), ",") }
