package cors

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
)

// maxOrigins bounds a list: each with a wildcard is tried on every request.
const maxOrigins = 200

// origins are what cors-allow-origin allows.
type origins struct {
	any   bool
	exact map[string]bool
	below []below
	// bad is what is wrong with an entry, empty if nothing is.
	bad string
}

// String is for the default alone.
func (o origins) String() string {
	if o.any {
		return "*"
	}
	return ""
}

// originForm has the scheme, the wildcard, and the host with its port.
var originForm = regexp.MustCompile(`^([a-z][a-z0-9+.-]{0,30}://)(\*\.)?([a-z0-9][a-z0-9._-]{0,252}(?::[0-9]{1,5})?)$`)

// parseOrigins never fails: an invalid entry allows no origin, while an invalid value
// would become the default, which allows all.
func parseOrigins(text string) (origins, error) {
	o := origins{exact: map[string]bool{}}
	entries, err := feature.List(text)
	if err != nil {
		return o, err
	}
	if len(entries) == 0 {
		o.bad = "the list is empty"
	}
	for i, entry := range entries {
		lower := strings.ToLower(entry)
		found := originForm.FindStringSubmatch(lower)
		switch {
		case entry == "*":
			o.any = true
		case i >= maxOrigins:
			o.bad = fmt.Sprintf("must be at most %d origins", maxOrigins)
		case lower == "null", found != nil && found[2] == "":
			o.exact[lower] = true
		case found != nil:
			o.below = append(o.below, below{Scheme: found[1], Rest: "." + found[3]})
		case o.bad == "":
			o.bad = fmt.Sprintf("%.80q is not an origin: must be scheme://host or scheme://host:port, where the host may begin with *., or else * or null", entry)
		}
	}
	return o, nil
}

// allows is cors.lua's function allowed in Go.
func (p policy) allows(origin string) bool {
	origin = strings.ToLower(origin)
	return p.Any || p.Exact[origin] || slices.ContainsFunc(p.Below, func(b below) bool {
		host, ok := strings.CutPrefix(origin, b.Scheme)
		label, rest := strings.CutSuffix(host, b.Rest)
		return ok && rest && label != "" && strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	})
}
