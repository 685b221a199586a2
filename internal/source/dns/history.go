package dns

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/headgate/headgate/internal/netguard"
	"github.com/headgate/headgate/internal/source"
)

const (
	// leastTTL and mostTTL bound how long an answer is used.
	minTTL = time.Second
	maxTTL = time.Hour
	// firstPause and lastPause bound the time between tries without success.
	firstPause = time.Second
	lastPause  = 30 * time.Second
	// lastUnknownPause bounds it for a name that has no addresses and that no
	// resolver can say anything of: only these tries take long, and nothing is
	// served by them.
	lastUnknownPause = 5 * time.Minute
	// keep is how long the addresses of a name stay that no resolver can say
	// anything of.
	keep = 24 * time.Hour
)

// An outcome is how a lookup ended.
type outcome int

const (
	// resolved: there are addresses.
	resolved outcome = iota
	// missing: the resolvers say that there is no such name.
	missing
	// empty: the resolvers say that the name has no address.
	empty
	// unknown: the resolvers can't say, or there are none.
	unknown
)

// An answer is what a lookup brought.
type answer struct {
	outcome   outcome
	addresses []netip.Addr
	ttl       time.Duration
	// from is the whole name that has the addresses.
	from string
	// err says more of why a resolver can't say.
	err error
}

// A history is what came of the lookups of one name so far.
type history struct {
	addresses []netip.Addr
	from      string
	// answered is when the addresses were last confirmed.
	answered time.Time
	failures int
}

// take takes the next answer. It returns what the name stands for now, and when
// to look it up again.
func (h *history) record(name string, a answer, now time.Time) (object *source.Addresses, pause time.Duration) {
	object = source.NewAddresses(name)
	switch {
	case a.outcome == resolved:
		*h = history{addresses: a.addresses, from: a.from, answered: now}
		object.Addresses = h.addresses
		return object, min(max(a.ttl, minTTL), maxTTL)
	case a.outcome != unknown || now.Sub(h.answered) > keep:
		h.addresses, h.from = nil, ""
	}
	h.failures++
	object.Addresses, object.Problem = h.addresses, problem(name, a.outcome)
	limit := lastPause
	if a.outcome == unknown && len(h.addresses) == 0 {
		limit = lastUnknownPause
	}
	return object, min(firstPause<<min(h.failures-1, 10), limit)
}

// problem says what is wrong, in words that stay the same while it is.
func problem(name string, o outcome) string {
	switch o {
	case missing:
		return fmt.Sprintf("the DNS name %s does not exist", name)
	case empty:
		return fmt.Sprintf("the DNS name %s has no address", name)
	}
	return fmt.Sprintf("no resolver can say what the DNS name %s stands for", name)
}

// sortOut splits addresses into those that may be connected to and those that
// lead to this machine, its neighbours or its credentials.
func sortOut(all []netip.Addr) (good, refused []netip.Addr) {
	for _, address := range all {
		if netguard.IsLocal(address) {
			refused = append(refused, address)
		} else {
			good = append(good, address)
		}
	}
	return good, refused
}
