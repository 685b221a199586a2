package dns

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/headgate/headgate/internal/guard"
	"github.com/headgate/headgate/internal/source"
)

const (
	// minTTL and maxTTL bound how long an answer is used.
	minTTL = time.Second
	maxTTL = time.Hour
	// firstPause and lastPause bound the time between tries without success.
	firstPause = time.Second
	lastPause  = 30 * time.Second
	// lastUnknownPause bounds it for a name without addresses that no resolver
	// can resolve: these lookups take long, and no traffic depends on them.
	lastUnknownPause = 5 * time.Minute
	// keep is how long addresses stay while no resolver can resolve the name.
	keep = 24 * time.Hour
)

// An outcome is how a lookup ended.
type outcome int

const (
	// resolved: there are addresses.
	resolved outcome = iota
	// missing: the name does not exist.
	missing
	// empty: the name has no address.
	empty
	// unknown: no resolver can resolve the name, or there are none.
	unknown
)

// An answer is the result of a lookup.
type answer struct {
	outcome   outcome
	addresses []netip.Addr
	ttl       time.Duration
	// from is the full name that has the addresses.
	from string
	// err has details about an unknown outcome.
	err error
}

// A history is the result of all lookups of one name so far.
type history struct {
	addresses []netip.Addr
	from      string
	// answered is when the addresses were last confirmed.
	answered time.Time
	failures int
}

// record records the next answer. It returns the current addresses of the name,
// and when to look it up again.
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
	object.Addresses, object.Problem = h.addresses, fmt.Sprintf(problems[a.outcome], name)
	limit := lastPause
	if a.outcome == unknown && len(h.addresses) == 0 {
		limit = lastUnknownPause
	}
	return object, min(firstPause<<min(h.failures-1, 10), limit)
}

// problems describe outcomes of a name, in words that stay the same while they last.
var problems = map[outcome]string{
	missing: "the DNS name %s does not exist",
	empty:   "the DNS name %s has no address",
	unknown: "no resolver can resolve the DNS name %s",
}

// sortOut splits addresses into usable ones and those that lead to this machine,
// its neighbours or its credentials.
func sortOut(all []netip.Addr) (good, refused []netip.Addr) {
	for _, address := range all {
		if guard.IsLocal(address) {
			refused = append(refused, address)
		} else {
			good = append(good, address)
		}
	}
	return good, refused
}
