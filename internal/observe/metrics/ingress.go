package metrics

import (
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// An ingressName is the namespace and name of an Ingress, which are labels.
type ingressName struct{ namespace, name string }

// isValid reports whether API servers would take it.
func (n ingressName) isValid() bool {
	const longest = 253
	text := n.namespace + n.name
	return max(len(n.namespace), len(n.name)) <= longest && utf8.ValidString(text)
}

// maxStrangers is how many Ingresses that are not served have counts of reviews of their own:
// anyone who reaches the webhook can make up names.
const maxStrangers = 100

// others is the label of those beyond a maximum.
const others = "_others"

// reviews counts reviews by Ingress. What was counted of an Ingress goes with it.
type reviews struct {
	passed, refused *prometheus.Desc

	mu sync.Mutex
	// served are the Ingresses that there are, and strangers is how many others have counts.
	served    map[ingressName]struct{}
	counts    map[ingressName]*[2]uint64
	strangers int
}

func newReviews() *reviews {
	labels := []string{"namespace", "ingress"}
	const most = " The first 100 Ingresses that are not served are counted by name, others as _others."
	return &reviews{
		passed:  prometheus.NewDesc(prefix+"check_success", "Number of reviews of an Ingress by the admission webhook that let it in."+most, labels, nil),
		refused: prometheus.NewDesc(prefix+"check_errors", "Number of reviews of an Ingress by the admission webhook that refused it, or failed."+most, labels, nil),
		served:  map[ingressName]struct{}{}, counts: map[ingressName]*[2]uint64{},
	}
}

func (r *reviews) serve(of ingressName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.served[of]; known {
		return
	}
	r.served[of] = struct{}{}
	if r.counts[of] != nil {
		r.strangers--
	}
}

func (r *reviews) remove(of ingressName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.served[of]; known {
		delete(r.served, of)
		delete(r.counts, of)
	}
}

func (r *reviews) count(of ingressName, passed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, served := r.served[of]; !served && r.counts[of] == nil {
		if r.strangers == maxStrangers || !of.isValid() {
			of = ingressName{others, others}
		} else {
			r.strangers++
		}
	}
	if r.counts[of] == nil {
		r.counts[of] = &[2]uint64{}
	}
	if passed {
		r.counts[of][0]++
	} else {
		r.counts[of][1]++
	}
}

// Describe implements prometheus.Collector.
func (r *reviews) Describe(to chan<- *prometheus.Desc) {
	to <- r.passed
	to <- r.refused
}

// Collect implements prometheus.Collector.
func (r *reviews) Collect(to chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of, n := range r.counts {
		for i, desc := range []*prometheus.Desc{r.passed, r.refused} {
			if n[i] > 0 {
				to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n[i]), of.namespace, of.name)
			}
		}
	}
}

// A Lack is what a backend lacks to answer.
type Lack string

// The values of Lack.
const (
	NoService  Lack = "no-service"
	NoEndpoint Lack = "no-endpoint"
	None       Lack = ""
)

// orphans are the Ingresses with a backend that can't answer.
type orphans struct {
	desc *prometheus.Desc

	mu sync.Mutex
	// backends are those of each Ingress, and lacking what backends lack that can't answer.
	backends map[ingressName][]string
	lacking  map[string]Lack
}

func newOrphans() *orphans {
	return &orphans{
		desc: prometheus.NewDesc(prefix+"orphan_ingress",
			"1 for each Ingress that names a Service that does not exist (type no-service), or one without endpoints (no-endpoint).",
			[]string{"namespace", "ingress", "type"}, nil),
		backends: map[ingressName][]string{}, lacking: map[string]Lack{},
	}
}

func (o *orphans) serve(of ingressName, backends []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.backends[of] = backends
}

func (o *orphans) remove(of ingressName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.backends, of)
}

func (o *orphans) backend(key string, lacks Lack) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if lacks == None {
		delete(o.lacking, key)
	} else {
		o.lacking[key] = lacks
	}
}

// Describe implements prometheus.Collector.
func (o *orphans) Describe(to chan<- *prometheus.Desc) { to <- o.desc }

// Collect implements prometheus.Collector.
func (o *orphans) Collect(to chan<- prometheus.Metric) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for of, backends := range o.backends {
		found := map[Lack]bool{}
		for _, key := range backends {
			if lacks := o.lacking[key]; lacks != None && !found[lacks] {
				found[lacks] = true
				to <- prometheus.MustNewConstMetric(o.desc, prometheus.GaugeValue, 1, of.namespace, of.name, string(lacks))
			}
		}
	}
}
