// Package names has lists of names that nginx.conf may have: headers, protocols, parameters.
//
// It must not know what they are used for.
package names

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Headers are names of headers.
type Headers struct{ names string }

var headerNameForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// NewHeaders takes names in any case. Beside an error it returns the valid ones.
func NewHeaders(names ...string) (Headers, error) {
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
	return Headers{strings.Join(slices.Compact(list), " ")}, err
}

// Names are the names in lower case.
func (h Headers) Names() []string { return strings.Fields(h.names) }

func (h Headers) String() string { return cmp.Or(strings.Join(h.Names(), ","), "none") }

// HeaderVariable is the variable with the value of a header that Lua sets instead of
// nginx.conf, for a name in lower case.
func HeaderVariable(name string) string { return "hg_header_" + strings.ReplaceAll(name, "-", "_") }

// RequestHeaders are the headers that nginx.conf sets in requests to backends, and that may
// be replaced, in lower case.
func RequestHeaders() []string {
	return []string{
		"x-request-id", "x-real-ip", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto",
		"x-forwarded-scheme", "x-scheme", "x-original-forwarded-for", "x-original-forwarded-host",
	}
}
