// Package pki is the source of what certificate authorities say about
// certificates: the certificates of issuers, and OCSP answers. It fetches what
// it is told to want, and delivers it as objects.
//
// It knows certificates, OCSP and the URLs in certificates. It must not know
// which certificate is shown for what.
//
// Whoever may write a Secret names the URLs. So all fetches are bounded in
// number, time and size, in all and for one owner, and lead neither to this
// machine nor to its neighbours; what comes back is checked, and never told: see
// docs/decisions/0012-certificate-authorities.md.
package pki

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/follow"
)

// Settings say how things are fetched.
type Settings struct {
	// AllowLocal lets URLs lead to loopback, link-local and unspecified
	// addresses.
	AllowLocal bool
	// Least is the shortest time between two questions about one certificate,
	// a minute if 0.
	MinPause time.Duration
	Log      *slog.Logger
}

// How much is fetched at a time: see follow.Slots.
const (
	knownAtOnce  = 16
	newAtOnce    = 64
	failedAtOnce = 16
)

// A fetcher fetches what is wanted, again and again, and delivers it.
type fetcher struct {
	queue *source.Queue
	*follow.Follower[string]
}

func newFetcher(log *slog.Logger) fetcher {
	queue := source.NewQueue()
	return fetcher{queue, follow.New[string](follow.Settings{
		Name: "pki", Slots: follow.Slots{Known: knownAtOnce, New: newAtOnce, Failed: failedAtOnce}, Queue: queue, Log: log,
	})}
}

// Run fetches what is wanted until ctx ends. It delivers nothing before
// something is.
func (f fetcher) Run(ctx context.Context, deliver func(context.Context, []source.Change)) error {
	var group sync.WaitGroup
	group.Go(func() { f.Follower.Run(ctx) })
	f.queue.Run(ctx, deliver, false)
	group.Wait()
	return nil
}

// The time between two fetches that fail grows from firstPause to lastPause.
const (
	minBackoff = 5 * time.Second
	maxBackoff = time.Hour
)

// backoff is how long to wait after that many failures in a row. What failed
// together need not be asked for together again.
func backoff(failures int) time.Duration {
	pause := min(minBackoff<<min(failures-1, 10), maxBackoff)
	return pause + rand.N(pause/4)
}
