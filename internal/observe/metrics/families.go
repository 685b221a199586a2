package metrics

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/procfs"
)

// prefix is that of ingress-nginx's metrics.
const prefix = "nginx_ingress_controller_"

// An Identity is what the labels of ingress-nginx's metrics say of the controller.
type Identity struct{ Namespace, Class, Pod string }

// A Build is what the program was built from.
type Build struct{ Release, Commit, Repository string }

// Families are ingress-nginx's metrics, except those of requests. They are there with
// --enable-metrics. A nil Families has none: its methods do nothing.
type Families struct {
	registry                prometheus.Registerer
	hash, succeeded, at     *prometheus.GaugeVec
	reloads, reloadFailures prometheus.Counter
	reviews                 *reviews
	orphans                 *orphans
}

// NewFamilies creates the families, and registers them.
func NewFamilies(registry prometheus.Registerer, of Identity, built Build) *Families {
	registry = prometheus.WrapRegistererWith(prometheus.Labels{
		"controller_namespace": of.Namespace, "controller_class": of.Class, "controller_pod": of.Pod,
	}, registry)
	add := promauto.With(registry)
	// There is no value before NGINX runs.
	gauge := func(name, help string) *prometheus.GaugeVec {
		return add.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, nil)
	}
	counter := func(name, help string) prometheus.Counter {
		return add.NewCounter(prometheus.CounterOpts{Name: prefix + name, Help: help})
	}
	add.NewGauge(prometheus.GaugeOpts{
		Name: prefix + "build_info", Help: "1; the labels say what the program was built from.",
		ConstLabels: prometheus.Labels{"release": built.Release, "build": built.Commit, "repository": built.Repository},
	}).Set(1)
	f := &Families{
		registry:       registry,
		hash:           gauge("config_hash", "Hash of nginx.conf and its files as NGINX runs with them. It is equal in replicas with the same configuration."),
		succeeded:      gauge("config_last_reload_successful", "1 if NGINX accepted the last configuration, 0 if it rejected it. 1 again once NGINX runs with what is wanted."),
		at:             gauge("config_last_reload_successful_timestamp_seconds", "When NGINX last started to run with a new configuration, as Unix time."),
		reloads:        counter("success", "Number of configurations that NGINX accepted: the first one, and one for each reload."),
		reloadFailures: counter("errors", "Number of configurations that NGINX rejected."),
		reviews:        newReviews(),
		orphans:        newOrphans(),
	}
	registry.MustRegister(f.orphans)
	return f
}

// Configured notes that NGINX runs with new files.
func (f *Families) Configured(files map[string][]byte) {
	if f == nil {
		return
	}
	f.hash.WithLabelValues().Set(hashOf(files))
	f.at.WithLabelValues().SetToCurrentTime()
	f.reloads.Inc()
	f.Unchanged()
}

// Unchanged notes that NGINX runs with the files that are wanted.
func (f *Families) Unchanged() {
	if f != nil {
		f.succeeded.WithLabelValues().Set(1)
	}
}

// Rejected notes that NGINX rejected new files.
func (f *Families) Rejected() {
	if f != nil {
		f.succeeded.WithLabelValues().Set(0)
		f.reloadFailures.Inc()
	}
}

// hashOf has 48 bits, which a sample holds exactly.
func hashOf(files map[string][]byte) float64 {
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sum := sha256.Sum256(files[name])
		hash.Write(append([]byte(name+"\x00"), sum[:]...))
	}
	return float64(binary.BigEndian.Uint64(hash.Sum(nil)) >> 16)
}

// Leader adds whether this replica holds the Lease of the election.
func (f *Families) Leader(lease string, leads func() bool) {
	if f == nil {
		return
	}
	f.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: prefix + "leader_election_status", Help: "1 if this replica is the leader, 0 if not; name is the Lease.",
		ConstLabels: prometheus.Labels{"name": lease},
	}, func() float64 {
		if leads() {
			return 1
		}
		return 0
	}))
}

// NGINX adds the metrics of NGINX's processes. master is the process ID of its master, 0 if
// there is none, and read asks NGINX for its numbers.
func (f *Families) NGINX(master func() int, read func(context.Context) (Connections, error)) error {
	if f == nil {
		return nil
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return err
	}
	f.registry.MustRegister(newProcesses(master, proc), newConnections(read))
	return nil
}

// Serve notes that an Ingress is served, with the backends that its rules name.
func (f *Families) Serve(namespace, ingress string, backends []string) {
	if f != nil {
		name := ingressName{namespace, ingress}
		f.orphans.serve(name, backends)
		f.reviews.serve(name)
	}
}

// Remove notes that an Ingress is no longer served.
func (f *Families) Remove(namespace, ingress string) {
	if f != nil {
		name := ingressName{namespace, ingress}
		f.orphans.remove(name)
		f.reviews.remove(name)
	}
}

// Backend notes what a backend lacks.
func (f *Families) Backend(key string, lacks Lack) {
	if f != nil {
		f.orphans.backend(key, lacks)
	}
}

// A Review is one request to the admission webhook about an Ingress.
type Review struct {
	Namespace, Ingress string
	Passed             bool
	// Ingresses is how many Ingresses share the hosts that were built for it, and Bytes the
	// size of what was built.
	Ingresses, Bytes int
	// Build is how long that took, Test the whole decision, and Total the whole request.
	Build, Test, Total time.Duration
}

// Webhook adds the metrics of the admission webhook, and returns where reviews are reported.
// That is nil for a nil Families.
func (f *Families) Webhook() func(Review) {
	if f == nil {
		return nil
	}
	f.registry.MustRegister(f.reviews)
	add := promauto.With(f.registry)
	gauge := func(name, help string) prometheus.Gauge {
		return add.NewGauge(prometheus.GaugeOpts{Name: prefix + "admission_" + name, Help: help})
	}
	const last = " in the last review of the admission webhook"
	tested := gauge("tested_ingresses", "Number of Ingresses"+last+": the one under review, and those that share its hosts.")
	rendered := gauge("render_ingresses", "The same as admission_tested_ingresses.")
	testing := gauge("tested_duration", "Time"+last+" until the decision, in seconds.")
	rendering := gauge("render_duration", "Time"+last+" to build what the Ingress touches, in seconds.")
	size := gauge("config_size", "Size in bytes of what was built"+last+".")
	total := gauge("roundtrip_duration", "Time"+last+" from the request to the answer, in seconds.")
	return func(r Review) {
		f.reviews.count(ingressName{r.Namespace, r.Ingress}, r.Passed)
		tested.Set(float64(r.Ingresses))
		rendered.Set(float64(r.Ingresses))
		testing.Set(r.Test.Seconds())
		rendering.Set(r.Build.Seconds())
		size.Set(float64(r.Bytes))
		total.Set(r.Total.Seconds())
	}
}
