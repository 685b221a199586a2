package names

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Upgrades are the protocols that clients may ask backends to change to by the header
// Upgrade. After that, no rule sees what they say to each other.
type Upgrades struct{ names string }

var upgradeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9./+_-]{0,63}$`)

// refusedUpgrades are words that mean something else in nginx.conf, and h2c: further
// requests would pass unseen.
var refusedUpgrades = []string{"default", "h2c", "hostnames", "include", "volatile"}

// NewUpgrades takes names as in the header, with or without a version.
func NewUpgrades(names ...string) (Upgrades, error) {
	for _, name := range names {
		if !upgradeForm.MatchString(name) || slices.Contains(refusedUpgrades, strings.ToLower(name)) {
			return Upgrades{}, fmt.Errorf("%q: must be the name of a protocol, with or without a version, such as websocket or SPDY/3.1, and not h2c", name)
		}
	}
	lower := make([]string, len(names))
	for i, name := range names {
		lower[i] = strings.ToLower(name)
	}
	slices.Sort(lower)
	return Upgrades{strings.Join(slices.Compact(lower), " ")}, nil
}

// Names are the protocols in lower case. The header is compared without regard to case.
func (u Upgrades) Names() []string { return strings.Fields(u.names) }

func (u Upgrades) String() string { return strings.Join(u.Names(), ",") }
