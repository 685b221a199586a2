package model

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// HeaderNames are names of headers.
type HeaderNames struct{ names string }

var headerNameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// NewHeaderNames takes names in any case. Beside an error it returns the valid ones.
func NewHeaderNames(names ...string) (HeaderNames, error) {
	var list []string
	var err error
	for _, name := range names {
		if !headerNameForm.MatchString(name) {
			err = fmt.Errorf("%q: must be the name of a header: up to 64 letters, digits, - and _", name)
			continue
		}
		list = append(list, strings.ToLower(name))
	}
	slices.Sort(list)
	return HeaderNames{strings.Join(slices.Compact(list), " ")}, err
}

// Names are the names in lower case.
func (h HeaderNames) Names() []string { return strings.Fields(h.names) }

func (h HeaderNames) String() string { return cmp.Or(strings.Join(h.Names(), ","), "none") }
