package event

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/cluster/permission"
)

const (
	// tries is how often an Event is tried, askTimeout bounds one. After the first
	// failure its namespace waits for firstBackoff, and twice as long each time.
	tries        = 5
	askTimeout   = 10 * time.Second
	firstBackoff = time.Second
	// A request that takes slow or longer makes its namespace wait slowApart
	// times as long: one goroutine writes all Events, and the reason, such as a
	// webhook, may affect one namespace only.
	slow      = 500 * time.Millisecond
	slowApart = 20
)

var errExists = errors.New("an Event of that name exists")

// record writes a note, puts it back to be tried again, or counts why it is not
// written.
func (r *Recorder) record(ctx context.Context, n attempt) {
	uid := r.uidOf(ctx, n.on)
	if uid == "" {
		return
	}
	a := r.accountOf(uid)
	if n.tried == 0 && !a.budget.TryAccept() {
		r.count(held)
		return
	}
	if r.limit.Wait(ctx) != nil {
		return
	}
	name, began := r.nameOf(n.note, uid), time.Now()
	err := r.write(ctx, n.note, uid, name, a.times[name])
	var backoff time.Duration
	if took := time.Since(began); took >= slow {
		backoff = slowApart * took
	}
	switch {
	case err == nil:
		a.times[name]++
		r.count(written)
	case errors.Is(err, errExists):
		a.times[name]++
		r.count(known)
	case gone(err), ctx.Err() != nil:
	case passing(err) && n.tried+1 < tries:
		backoff = max(backoff, firstBackoff<<n.tried)
		n.tried++
		r.queue.putBack(n)
	default:
		r.warnFailed(err, writing(n.on.name.Namespace))
		r.count(failed)
	}
	if backoff > 0 {
		r.queue.backOff(n.on.name.Namespace, time.Now().Add(backoff))
	}
}

// uidOf is empty if the object does not exist any more.
func (r *Recorder) uidOf(ctx context.Context, on subject) types.UID {
	if on.kind != podKind {
		return r.settings.UID(on.kind.resource, on.name)
	}
	if r.podUID != "" {
		return r.podUID
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	pod, err := r.settings.Client.Pods(on.name.Namespace).Get(ctx, on.name.Name, metav1.GetOptions{})
	if err != nil {
		r.count(failed)
		r.warnFailed(err, podOf(on.name.Namespace))
		return ""
	}
	r.podUID = pod.UID
	return pod.UID
}

// nameOf makes a name that the same Event gets again, so that a state that was
// reported is recognised after a restart, and by other replicas.
func (r *Recorder) nameOf(n note, uid types.UID) string {
	run := ""
	if n.again {
		run = r.run + r.settings.Pod.Name
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%t\x00%s\x00%s\x00%s", uid, n.warning, n.reason, n.message, run))
	const longest = 200
	object := n.on.name.Name
	return strings.TrimRight(object[:min(len(object), longest)], ".-") + "." + hex.EncodeToString(sum[:10])
}

// write writes an Event, or increments the count of one that was written before.
func (r *Recorder) write(ctx context.Context, n note, uid types.UID, name string, times int32) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	events, now := r.settings.Client.Events(n.on.name.Namespace), metav1.Now()
	if times > 0 {
		patch, err := json.Marshal(map[string]any{"count": times + 1, "lastTimestamp": now})
		if err != nil {
			return err
		}
		_, err = events.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			return err
		}
		// The API server keeps Events for an hour.
	}
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.on.name.Namespace, Name: name},
		InvolvedObject: corev1.ObjectReference{
			Kind: n.on.kind.kind, APIVersion: n.on.kind.version, Namespace: n.on.name.Namespace, Name: n.on.name.Name, UID: uid,
		},
		Type: corev1.EventTypeNormal, Reason: n.reason, Message: n.message,
		Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source:              corev1.EventSource{Component: component},
		ReportingController: component, ReportingInstance: r.settings.Pod.Name,
	}
	if n.warning {
		e.Type = corev1.EventTypeWarning
	}
	_, err := events.Create(ctx, e, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return errExists
	}
	return err
}

// gone reports whether the object or the namespace of an Event is gone.
func gone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// passing reports whether the same request may succeed later.
func passing(err error) bool {
	status, answered := errors.AsType[*apierrors.StatusError](err)
	return !answered || status.ErrStatus.Code >= 500 || apierrors.IsTooManyRequests(err)
}

// warnFailed logs why a request failed.
func (r *Recorder) warnFailed(err error, need permission.Permission) {
	message := "the API server fails"
	if apierrors.IsForbidden(err) {
		message = "a permission is missing"
	}
	r.warn(message, "verb", need.Verbs, "resource", need.String(), "namespace", need.Where(),
		"needed", need.Need, "without", need.Without, "error", err)
}
