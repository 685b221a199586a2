package kube

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/cluster/permission"
)

// repeat is how often an incident that lasts is logged again.
const repeat = 5 * time.Minute

// A journal logs failures of requests to the API server: when they begin, rarely
// while they last, and when they end.
type journal struct {
	log *slog.Logger
	// served: a first batch was delivered.
	served atomic.Bool

	mu        sync.Mutex
	incidents map[incident]times
	// answered is when the API server last answered.
	answered time.Time
}

// An incident is that of one request, or of the API server as a whole.
type incident struct {
	resource permission.Permission
	verb     string
}

type times struct{ since, logged time.Time }

func newJournal(log *slog.Logger) *journal {
	return &journal{log: log, incidents: map[incident]times{}}
}

// report records the result of a request; nil is success. An error of a request
// that was sent before the last answer does not mean that the API server is away.
func (j *journal) report(r permission.Permission, verb string, sent time.Time, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	server, request := incident{}, incident{r, verb}
	status, answered := errors.AsType[*apierrors.StatusError](err)
	if err == nil || answered {
		j.answered = time.Now()
	}
	switch {
	case !answered && err != nil && sent.Before(j.answered):
	case err == nil:
		j.end(server, "the API server answers again")
		j.end(request, "the request succeeds again", "verb", verb, "resource", r.String())
	case !answered:
		j.warn(server, "the API server does not answer", "error", err, "effect", j.effect())
	case apierrors.IsUnauthorized(err):
		j.warn(server, "the API server does not accept the credentials", "error", err, "effect", j.effect())
	default:
		j.end(server, "the API server answers again")
		about := []any{"verb", verb, "resource", r.String(), "namespace", r.Where()}
		if apierrors.IsForbidden(err) {
			j.warn(request, "a permission is missing", append(about, "needed", r.Need, "without", r.Without, "error", err)...)
		} else if !expected(err, status.ErrStatus.Reason) {
			j.warn(request, "the API server fails", append(about, "error", err, "effect", j.effect())...)
		}
	}
}

func (j *journal) effect() string {
	if j.served.Load() {
		return "Headgate serves the last known state"
	}
	return "Headgate serves nothing until this is resolved"
}

// expected reports whether an error is normal when following a resource: the
// version to start from is too old, or newer than that of the API server, or an
// older API server can't stream lists, so that an ordinary one is requested.
func expected(err error, reason metav1.StatusReason) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) ||
		reason == metav1.StatusReasonTooManyRequests
}

func (j *journal) warn(t incident, message string, attrs ...any) {
	now := time.Now()
	when, ok := j.incidents[t]
	if !ok {
		when.since = now
	}
	if !ok || now.Sub(when.logged) >= repeat {
		when.logged = now
		j.log.Warn("kubernetes: "+message, attrs...)
	}
	j.incidents[t] = when
}

func (j *journal) end(t incident, message string, attrs ...any) {
	if when, ok := j.incidents[t]; ok {
		delete(j.incidents, t)
		j.log.Info("kubernetes: "+message, append(attrs, "after", time.Since(when.since).Round(time.Millisecond))...)
	}
}
