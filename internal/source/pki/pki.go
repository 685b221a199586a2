// Package pki is the source of certificates of issuers and of OCSP responses. It
// fetches them from certificate authorities for its subscriptions, and delivers
// them as objects.
//
// It knows certificates, OCSP and the URLs in certificates. It must not know
// which name has which certificate.
//
// Tenants who may write a Secret choose the URLs. So all fetches are bounded in
// number, time and size, in all and per owner, and lead neither to this machine
// nor to its neighbours. Responses are checked, and no message contains them: see
// docs/decisions/0012-certificate-authorities.md.
package pki

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate/internal/source/follow"
)

// Settings are those of fetches.
type Settings struct {
	// AllowLocal allows URLs that lead to loopback, link-local and unspecified
	// addresses.
	AllowLocal bool
	// MinPause is the shortest time between two OCSP requests for one
	// certificate, a minute if 0.
	MinPause time.Duration
	Log      *slog.Logger
}

// atOnce is the number of fetches at a time.
var atOnce = follow.Slots{Known: 16, New: 64, Failed: 16}

// The time between two fetches that fail grows from minBackoff to maxBackoff.
const (
	minBackoff = 5 * time.Second
	maxBackoff = time.Hour
)

// backoff is how long to wait after that many failures in a row. It is random, so
// that fetches that failed at the same time are not repeated at the same time.
func backoff(failures int) time.Duration {
	pause := min(minBackoff<<min(failures-1, 10), maxBackoff)
	return pause + rand.N(pause/4)
}
