package tracing

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// logInterval is the time between two lines about the same.
	logInterval = time.Minute
	// maxError is how much of an error is logged, and minSecret how long a text is that is taken
	// for a credential.
	maxError  = 300
	minSecret = 4
)

// A failureLog says that spans were not exported, and that they are again, without a line for
// each batch.
type failureLog struct {
	log *slog.Logger

	mu sync.Mutex
	// last is when a failure was logged, failed how many spans were lost since, and failing
	// whether the last export failed.
	last    time.Time
	failed  int
	failing bool
}

// note takes the result of an export.
func (l *failureLog) note(to endpoint, failed int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		// Only if the failure was logged as well.
		if l.failing && l.failed == 0 {
			l.log.Info("spans are exported again", "collector", to.address)
		}
		l.failing = false
		return
	}
	l.failing = true
	l.failed += failed
	if time.Since(l.last) < logInterval {
		return
	}
	l.log.Warn("spans were not exported", "collector", to.address, "reason", reason(err), "err", to.redact(err), "spans", l.failed)
	l.last, l.failed = time.Now(), 0
}

// reason says what is wrong, in few words.
func reason(err error) string {
	state, _ := status.FromError(err)
	code := state.Code()
	http := regexp.MustCompile(`failed to send to \S+: (\d{3})`).FindStringSubmatch(err.Error())
	switch {
	case len(http) == 2 && (http[1] == "401" || http[1] == "403"), code == codes.Unauthenticated, code == codes.PermissionDenied:
		return "the collector rejects the credentials"
	case len(http) == 2 && http[1] == "404", code == codes.Unimplemented:
		return "there is no collector for spans with this protocol"
	case errors.Is(err, context.DeadlineExceeded), code == codes.DeadlineExceeded:
		return "the collector did not respond in time"
	case len(http) == 2, code == codes.InvalidArgument, code == codes.ResourceExhausted, strings.Contains(err.Error(), partialSuccess):
		return "the collector does not take the spans"
	}
	return "the collector does not respond"
}

// redact is the text of an error without credentials, which a collector may repeat.
func (e environment) redact(err error) string {
	text, _, _ := strings.Cut(err.Error(), "body: ")
	for _, secret := range e.secrets {
		if len(secret) >= minSecret {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return strings.ToValidUTF8(text[:min(len(text), maxError)], "")
}
