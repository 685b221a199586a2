// Package event writes Kubernetes Events: the findings of objects, and the two
// Events by which tools know that Headgate serves an Ingress and that it
// reloaded NGINX.
//
// Its callers never wait. The number of Events is bounded: per second, per
// object, and in the queue per namespace. Namespaces take turns, so that many
// Events of one namespace do not delay those of another. A namespace whose
// Events fail or take long is left alone for a while. Events beyond a bound are
// dropped and counted; /v1/findings has all findings.
//
// It knows what an Event is, but neither what findings are about nor where they
// come from.
package event

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/lru"

	"github.com/headgate/headgate/internal/cluster/client"
	"github.com/headgate/headgate/internal/finding"
)

// component is the source of Events: the name of ingress-nginx, by which tools
// select them.
const component = "nginx-ingress-controller"

// Settings are what a Recorder is made of.
type Settings struct {
	Client *client.Clients
	// UID returns that of an object of a resource such as "ingresses", in its
	// newest version; empty if there is none.
	UID func(resource string, name types.NamespacedName) types.UID
	// Pod is the Pod of this process, which gets the Events about reloads;
	// without a name there are none.
	Pod types.NamespacedName
	// NoSync leaves out the Events Sync.
	NoSync bool
	// Written counts Events by their result.
	Written *prometheus.CounterVec
	Log     *slog.Logger
}

// The number of Events is low compared with Headgate's other requests to the API
// server: perSecond on average, burst at once.
const (
	perSecond = 10
	burst     = 50
)

// The results that Events are counted by.
const (
	written = "written"
	// known Events exist already, from before a restart or from another replica.
	known = "known"
	// held Events exceed the bound of their object.
	held = "held"
	// dropped Events exceed the queue.
	dropped = "dropped"
	failed  = "failed"
)

// A Recorder writes Events. Its methods may be called from several goroutines;
// all but Run return without waiting.
type Recorder struct {
	settings Settings
	queue    *queue
	limit    flowcontrol.RateLimiter
	// accounts are by the UID of the object.
	accounts *lru.Cache
	// run is part of the names of Events that must differ from those of other
	// runs.
	run    string
	podUID types.UID

	mu sync.Mutex
	// logged is when each incident was last logged.
	logged map[string]time.Time
}

// New makes a Recorder. It writes nothing before Run is called.
func New(s Settings) *Recorder {
	return &Recorder{
		settings: s, queue: newQueue(), accounts: lru.New(maxAccounts), logged: map[string]time.Time{},
		limit: flowcontrol.NewTokenBucketRateLimiter(perSecond, burst),
		run:   time.Now().Format(time.RFC3339Nano),
	}
}

// A note is an Event to write.
type note struct {
	on      subject
	warning bool
	reason  string
	message string
	// again: it reports an action, and is written each time. Otherwise it
	// reports a state, which is written once.
	again bool
}

// A subject is the object that an Event is about.
type subject struct {
	kind kind
	name types.NamespacedName
}

// A kind is a kind of object that Events are about.
type kind struct{ resource, kind, version string }

var (
	ingressKind = kind{"ingresses", "Ingress", networkingv1.SchemeGroupVersion.String()}
	podKind     = kind{"pods", "Pod", "v1"}
	// kinds are those of findings.
	kinds = map[string]kind{
		"ingress": ingressKind, "service": {"services", "Service", "v1"},
		"secret": {"secrets", "Secret", "v1"}, "configmap": {"configmaps", "ConfigMap", "v1"},
	}
)

// subjectOf is what the Event of a finding is about: its object, or for a file of the Pod the Pod.
func (r *Recorder) subjectOf(object string) (subject, bool) {
	if strings.HasPrefix(object, "file/") {
		return subject{podKind, r.settings.Pod}, r.settings.Pod.Name != ""
	}
	return subjectOf(object)
}

// subjectOf parses the object of a finding. Objects without a namespace have no Events.
func subjectOf(object string) (subject, bool) {
	parts := strings.Split(object, "/")
	if len(parts) != 3 {
		return subject{}, false
	}
	of, ok := kinds[parts[0]]
	return subject{of, types.NamespacedName{Namespace: parts[1], Name: parts[2]}}, ok
}

// Findings takes new findings. Each becomes a Warning with the finding's code as
// its reason, unless that was written before a restart.
func (r *Recorder) Findings(came []finding.Finding) {
	for _, f := range came {
		on, ok := r.subjectOf(f.Object)
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

// Taken records that an Ingress came or changed, and is being served.
func (r *Recorder) Taken(ingress types.NamespacedName) {
	if r.settings.NoSync {
		return
	}
	r.put(note{on: subject{ingressKind, ingress}, reason: "Sync", message: "Scheduled for sync", again: true})
}

// Reloaded records that NGINX was reloaded, or why that failed.
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
		r.warn("too many Events, some are dropped; /v1/findings on the controller's socket has all findings",
			"namespace", n.on.name.Namespace)
	}
}

func (r *Recorder) count(result string) { r.settings.Written.WithLabelValues(result).Inc() }

// Run writes Events until ctx ends.
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

// shorten cuts a message to the length that the API server accepts.
func shorten(message string) string {
	const maxLength = 1024
	if len(message) <= maxLength {
		return message
	}
	return strings.ToValidUTF8(message[:maxLength-len("…")], "") + "…"
}

// repeat is how often an incident that lasts is logged again.
const repeat = 5 * time.Minute

// warn logs an incident when it begins, and rarely while it lasts.
func (r *Recorder) warn(message string, attrs ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.logged[message]) >= repeat {
		r.logged[message] = now
		r.settings.Log.Warn("events: "+message, attrs...)
	}
}
