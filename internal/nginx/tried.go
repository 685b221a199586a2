package nginx

import (
	"fmt"
	"sync"
	"time"
)

// A try takes up to some tenths of a second of a processor, and tenants decide how many
// configurations there are to try. So each namespace has a share.
const (
	// maxTried and triedOfNamespace bound how many results are remembered.
	maxTried         = 1000
	triedOfNamespace = 200
	// tryBurst is how many tries a namespace has at once, and tryInterval how long it takes
	// until it has one more.
	tryBurst    = 100
	tryInterval = 2 * time.Second
	// slowTry is what no try takes on a machine that is not overloaded. One that does counts
	// as one for each costOfSlow.
	slowTry    = 5 * time.Second
	costOfSlow = 500 * time.Millisecond
)

// tried has the results of tries, and the shares of namespaces. The same lines are tried once.
type tried struct {
	mu      sync.Mutex
	results map[string]*triedResult
	shares  map[string]*tryShare
	uses    int
}

type triedResult struct {
	err       error
	namespace string
	outside   bool
	// used is greater than that of results which were used before.
	used int
}

type tryShare struct {
	tokens float64
	since  time.Time
	// results is how many are remembered.
	results int
}

func (t *tried) result(key string) (err error, known bool) { //nolint:revive,staticcheck // The error is what is known.
	t.mu.Lock()
	defer t.mu.Unlock()
	r, known := t.results[key]
	if !known {
		return nil, false
	}
	t.uses++
	r.used = t.uses
	return r.err, true
}

// share is that of a namespace, which begins with all of its tries.
func (t *tried) share(namespace string) *tryShare {
	if t.shares == nil {
		t.results, t.shares = map[string]*triedResult{}, map[string]*tryShare{}
	}
	s := t.shares[namespace]
	if s == nil {
		s = &tryShare{tokens: tryBurst}
		t.shares[namespace] = s
	}
	return s
}

// take takes one try of a namespace.
func (t *tried) take(namespace string, now time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.share(namespace)
	if !s.since.IsZero() {
		s.tokens = min(tryBurst, s.tokens+now.Sub(s.since).Seconds()/tryInterval.Seconds())
	}
	if s.since = now; s.tokens < 1 {
		return fmt.Errorf("namespace %s can have %d configurations tested at once, and one more every %v", namespace, tryBurst, tryInterval)
	}
	s.tokens--
	return nil
}

// took charges a namespace for a slow try.
func (t *tried) took(namespace string, time time.Duration) {
	if time < slowTry {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.share(namespace).tokens -= time.Seconds() / costOfSlow.Seconds()
}

// keep remembers a result. If a namespace has too many, that which it has not used for longest
// makes room, and if there are too many together, one of the namespace that has most.
func (t *tried) keep(namespace, key string, outside bool, result error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.share(namespace)
	if t.results[key] != nil {
		return
	}
	switch {
	case s.results >= triedOfNamespace:
		t.forget(namespace)
	case len(t.results) >= maxTried:
		most := namespace
		for other, of := range t.shares {
			if of.results > t.shares[most].results {
				most = other
			}
		}
		t.forget(most)
	}
	t.uses++
	t.results[key] = &triedResult{result, namespace, outside, t.uses}
	s.results++
}

// forget drops the result of a namespace that was not used for longest.
func (t *tried) forget(namespace string) {
	oldest := ""
	for key, r := range t.results {
		if r.namespace == namespace && (oldest == "" || r.used < t.results[oldest].used) {
			oldest = key
		}
	}
	delete(t.results, oldest)
	t.shares[namespace].results--
}

// forgetOutside drops the results that depend on more than what was tried.
func (t *tried) forgetOutside() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, r := range t.results {
		if r.outside {
			delete(t.results, key)
			t.shares[r.namespace].results--
		}
	}
}
