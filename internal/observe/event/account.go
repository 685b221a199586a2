package event

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// maxBurst is how many Events of an object are written without a pause;
	// after that one is written each pause. client-go does the same.
	maxBurst = 25
	pause    = 5 * time.Minute
	// maxAccounts is how many objects of recent Events are remembered.
	maxAccounts = 8192
)

// An account is what was written about one object.
type account struct {
	budget flowcontrol.RateLimiter
	// times is how often each Event was written, by its name.
	times map[string]int32
}

func (r *Recorder) accountOf(uid types.UID) *account {
	known, _ := r.accounts.Get(uid)
	a, ok := known.(*account)
	if !ok {
		a = &account{flowcontrol.NewTokenBucketRateLimiter(float32(1/pause.Seconds()), maxBurst), map[string]int32{}}
		r.accounts.Add(uid, a)
	}
	return a
}
