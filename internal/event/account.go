package event

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// maxBurst is how many Events of an object are written without a pause;
	// after that one is written each pause. client-go does the same.
	maxBurst = 25
	pause    = 5 * time.Minute
	// maxAccounts is how many recent objects are remembered, besides as many
	// older ones.
	maxAccounts = 4096
)

// An account is what was written about one object.
type account struct {
	left float64
	last time.Time
	// times is how often each Event was written, by its name.
	times map[string]int32
}

// spend reports whether one more Event may be written.
func (a *account) spend(now time.Time) bool {
	a.left = min(maxBurst, a.left+float64(now.Sub(a.last))/float64(pause))
	a.last = now
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}

// accounts remember the objects of recent Events. An object that was not used
// while maxAccounts others were is forgotten.
type accounts struct{ recent, before map[types.UID]*account }

func newAccounts() *accounts {
	return &accounts{recent: map[types.UID]*account{}, before: map[types.UID]*account{}}
}

func (all *accounts) of(uid types.UID, now time.Time) *account {
	a := all.recent[uid]
	if a != nil {
		return a
	}
	if a = all.before[uid]; a == nil {
		a = &account{left: maxBurst, last: now, times: map[string]int32{}}
	}
	if len(all.recent) >= maxAccounts {
		all.before, all.recent = all.recent, map[types.UID]*account{}
	}
	all.recent[uid] = a
	return a
}
