// Package event writes Kubernetes Events: what is wrong with an object of a
// tenant's, where its owner looks for it, and the two Events by which tools
// know that Headgate took an Ingress and that it reloaded NGINX.
//
// It takes what it is told without making anybody wait, and writes a bounded
// number, whatever happens: so many a second, so many of an object, and of
// what waits so many of a namespace, in turns, so that no namespace's storm
// keeps another's Events back; and a namespace whose Events fail, or take long,
// rests. What is too much is dropped and counted: /v1/findings has all.
//
// It knows what an Event is, and neither what findings are about nor who tells
// them.
package event

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/headgate/headgate/internal/finding"
)

// component is who Events say they are from: the predecessor's name, by which
// tools select them.
const component = "nginx-ingress-controller"

// Settings are what a Recorder is made of.
type Settings struct {
	Client typedcorev1.CoreV1Interface
	// UID is that of an object of a resource, as "ingresses", in its newest
	// version; empty if it is not there.
	UID func(resource string, name types.NamespacedName) types.UID
	// Pod is the one that this runs in, which has the Events about reloads;
	// without a name there are none.
	Pod types.NamespacedName
	// NoSync leaves out the Events of Ingresses that were taken.
	NoSync bool
	// Written counts Events by what became of them: see the results.
	Written *prometheus.CounterVec
	Log     *slog.Logger
	// Timing is DefaultTiming where it is not set.
	Timing Timing
}

// Timing bounds the number of Events.
type Timing struct {
	// PerSecond is how many are written in the long run, Burst how many at once.
	PerSecond float32
	Burst     int
	// Retry is how long a namespace rests after an Event's first failure. It
	// doubles with each further one of the same Event.
	Retry time.Duration
}

// DefaultTiming is a small part of what the API server is asked in any case.
func DefaultTiming() Timing { return Timing{PerSecond: 10, Burst: 50, Retry: time.Second} }

// The results that Events are counted by.
const (
	written = "written"
	// known were there already, from before a restart or by another replica.
	known = "known"
	// held are more than an object has.
	held = "held"
	// dropped are more than can wait.
	dropped = "dropped"
	failed  = "failed"
)

// A Recorder writes Events. Its methods may be called from several goroutines;
// those that take something don't wait.
type Recorder struct {
	settings  Settings
	queue     *queue
	limit     flowcontrol.RateLimiter
	accounts  *accounts
	incidents incidents
	// run is part of the names of Events that no other run may take for its own.
	run    string
	podUID types.UID
}

// New makes a Recorder. It writes nothing before it runs.
func New(s Settings) *Recorder {
	if s.Timing == (Timing{}) {
		s.Timing = DefaultTiming()
	}
	return &Recorder{
		settings: s, queue: newQueue(), accounts: newAccounts(),
		limit:     flowcontrol.NewTokenBucketRateLimiter(s.Timing.PerSecond, s.Timing.Burst),
		incidents: incidents{log: s.Log},
		run:       time.Now().Format(time.RFC3339Nano),
	}
}

// A note is an Event to write.
type note struct {
	on      subject
	warning bool
	reason  string
	message string
	// again: it tells what happened now, and is written each time that it
	// happens. Otherwise it tells a state, which is written once.
	again bool
}

// A subject is the object that an Event is about.
type subject struct {
	kind kind
	name types.NamespacedName
}

// A kind is one of objects that Events are about.
type kind struct{ resource, kind, version string }

var (
	ingressKind = kind{"ingresses", "Ingress", networkingv1.SchemeGroupVersion.String()}
	podKind     = kind{"pods", "Pod", "v1"}
)

// subjectOf reads the object of a finding. Files, and what has no namespace,
// have no Events.
func subjectOf(object string) (subject, bool) {
	parts := strings.Split(object, "/")
	if len(parts) != 3 {
		return subject{}, false
	}
	on := subject{name: types.NamespacedName{Namespace: parts[1], Name: parts[2]}}
	switch parts[0] {
	case "ingress":
		on.kind = ingressKind
	case "service":
		on.kind = kind{"services", "Service", "v1"}
	case "secret":
		on.kind = kind{"secrets", "Secret", "v1"}
	case "configmap":
		on.kind = kind{"configmaps", "ConfigMap", "v1"}
	default:
		return subject{}, false
	}
	return on, true
}

// Findings takes findings that came. Each makes a Warning with the finding's
// code as its reason; one that was there before a restart makes none.
func (r *Recorder) Findings(came []finding.Finding) {
	for _, f := range came {
		on, ok := subjectOf(f.Object)
		if !ok {
			continue
		}
		message := f.Message + "; " + f.Effect
		if f.Field != "" {
			message = f.Field + ": " + message
		}
		r.put(note{on: on, warning: true, reason: string(f.Code), message: shorten(message)})
	}
}

// Taken says that an Ingress came or changed, and is being served.
func (r *Recorder) Taken(ingress types.NamespacedName) {
	if r.settings.NoSync {
		return
	}
	r.put(note{on: subject{ingressKind, ingress}, reason: "Sync", message: "Scheduled for sync", again: true})
}

// Reloaded says that NGINX was reloaded, or why that failed.
func (r *Recorder) Reloaded(err error) {
	if r.settings.Pod.Name == "" {
		return
	}
	n := note{
		on: subject{podKind, r.settings.Pod}, reason: "RELOAD", again: true,
		message: "NGINX reload triggered due to a change in configuration",
	}
	if err != nil {
		n.warning, n.message = true, shorten("Error reloading NGINX: "+err.Error())
	}
	r.put(n)
}

func (r *Recorder) put(n note) {
	if !r.queue.put(n) {
		r.count(dropped)
		r.incidents.warn("there are more than can be written; /v1/findings on the controller's socket has all findings",
			"namespace", n.on.name.Namespace)
	}
}

func (r *Recorder) count(result string) { r.settings.Written.WithLabelValues(result).Inc() }

// Run writes what is taken until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	for ctx.Err() == nil {
		a, again, ok := r.queue.take(time.Now())
		if ok {
			r.record(ctx, a)
			continue
		}
		var due <-chan time.Time
		if !again.IsZero() {
			due = time.After(time.Until(again))
		}
		select {
		case <-ctx.Done():
		case <-r.queue.filled:
		case <-due:
		}
	}
}

// shorten keeps a message to what the API server takes.
func shorten(message string) string {
	const maxLength = 1024
	if len(message) <= maxLength {
		return message
	}
	return strings.ToValidUTF8(message[:maxLength-len("…")], "") + "…"
}

// reference is the object of an Event.
func (n note) reference(uid types.UID) corev1.ObjectReference {
	return corev1.ObjectReference{
		Kind: n.on.kind.kind, APIVersion: n.on.kind.version,
		Namespace: n.on.name.Namespace, Name: n.on.name.Name, UID: uid,
	}
}
