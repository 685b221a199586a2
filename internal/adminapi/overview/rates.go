package overview

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Classes is the number of the classes of statuses: others, 1xx, 2xx and so on.
const Classes = 6

// Counts are numbers of requests by the class of the status.
type Counts [Classes]uint64

const (
	// resolution is the shortest time between two looks at the counters, and window the
	// time for which rates are computed.
	resolution = time.Second
	window     = 10 * time.Second
	// forgotten is after which time a look at the counters is too old.
	forgotten = time.Minute
)

// Rates computes rates from counters. It looks at them when it is asked, and never else. Its
// methods may be called from several goroutines.
type Rates struct {
	totals func() map[string]Counts

	mu    sync.Mutex
	looks []look
}

// A look is what the counters were at a time.
type look struct {
	at     time.Time
	totals map[string]Counts
}

// A Rate is the requests of a host per second.
type Rate struct {
	Host string  `json:"host"`
	All  float64 `json:"all"`
	// Classes are by class of status: others, 1xx, 2xx, 3xx, 4xx, 5xx.
	Classes [Classes]float64 `json:"classes"`
	// Requests is the number of all so far.
	Requests uint64 `json:"requests"`
}

// NewRates returns Rates of the counters of hosts.
func NewRates(totals func() map[string]Counts) *Rates { return &Rates{totals: totals} }

// Now returns the rates of all hosts over the last seconds, the highest first. It is over 0
// seconds if it was not asked lately.
func (r *Rates) Now(now time.Time) (list []Rate, over float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looks = slices.DeleteFunc(r.looks, func(l look) bool { return now.Sub(l.at) > forgotten || l.at.After(now) })
	if n := len(r.looks); n == 0 || now.Sub(r.looks[n-1].at) >= resolution {
		r.looks = append(r.looks, look{now, r.totals()})
	}
	// One look stays that is older than the window.
	for len(r.looks) > 2 && now.Sub(r.looks[1].at) >= window {
		r.looks = r.looks[1:]
	}
	first, last := r.looks[0], r.looks[len(r.looks)-1]
	over = last.at.Sub(first.at).Seconds()
	list = []Rate{}
	for host, counts := range last.totals {
		list = append(list, rateOf(host, first.totals[host], counts, over))
	}
	slices.SortFunc(list, func(a, b Rate) int {
		return cmp.Or(cmp.Compare(b.All, a.All), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Host, b.Host))
	})
	return list, over
}

func rateOf(host string, before, now Counts, over float64) Rate {
	r := Rate{Host: host}
	for class, count := range now {
		r.Requests += count
		// Series go with their routes, and others may be there when they come back.
		if over > 0 && count > before[class] {
			r.Classes[class] = float64(count-before[class]) / over
		}
		r.All += r.Classes[class]
	}
	return r
}
