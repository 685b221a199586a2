package kube

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/permission"
)

// repeat is how often a trouble that lasts is told again.
const repeat = 5 * time.Minute

// A journal tells what is wrong with requests to the API server: once when it
// begins, rarely while it lasts, and when it ends.
type journal struct {
	log *slog.Logger
	// served: a first batch was delivered.
	served atomic.Bool

	mu        sync.Mutex
	incidents map[incident]times
	// answered is when the API server last answered.
	answered time.Time
}

// A trouble is of one request, or of the API server as a whole.
type incident struct {
	resource permission.Permission
	verb     string
}

type times struct{ since, logged time.Time }

func newJournal(log *slog.Logger) *journal {
	return &journal{log: log, incidents: map[incident]times{}}
}

// report takes what became of a request; nil is success. One that was sent
// before the API server answered another says nothing about whether it is away.
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
	case apierrors.IsForbidden(err):
		j.end(server, "the API server answers again")
		j.warn(request, "a permission is missing", "verb", verb, "resource", r.String(), "namespace", r.Where(),
			"needed", r.Need, "without", r.Without, "error", err)
	case expected(err, status.ErrStatus.Reason):
		j.end(server, "the API server answers again")
	default:
		j.end(server, "the API server answers again")
		j.warn(request, "the API server fails", "verb", verb, "resource", r.String(), "namespace", r.Where(), "error", err, "effect", j.effect())
	}
}

func (j *journal) effect() string {
	if j.served.Load() {
		return "the last state is served on"
	}
	return "nothing is served until it does"
}

// expected reports whether an error is part of following a resource: the version
// to start from is too old, or newer than the API server's; or an older API
// server can't stream lists, and is asked for an ordinary one.
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
