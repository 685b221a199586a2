// Package traffic has the metrics of requests, with the names and labels of ingress-nginx.
//
// NGINX's workers count, and report once a second what they have counted since the last
// time. The package adds it up. A series goes when its Ingress, path, Service or name goes:
// the controller says which ones are served. The package must not know how reports are
// fetched.
package traffic

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/observe/tracker"
)

// Others is the label ingress of requests beyond the budget of their namespace.
const Others = "_others"

// interval is how often reports are fetched.
const interval = time.Second

// Settings say what is counted, and for whom.
type Settings struct {
	// Namespace and Pod are those of this process, and Class is that of the controller. They
	// are labels.
	Namespace, Pod, Class string
	// PerHost adds the label host, and AnyHost counts names that no Ingress has.
	PerHost, AnyHost bool
	// StatusClasses counts statuses by class: 2xx.
	StatusClasses bool
	// Buckets are the upper bounds of histograms.
	Buckets Buckets
	// Excluded are the names of families to leave out.
	Excluded []string
	// Schema is the resolution of native histograms, nil for none, which have MaxBuckets
	// buckets at most (0: any number).
	Schema     *int32
	MaxBuckets int
	// Budget is the maximum number of series of a namespace. Each has a sample in all families.
	Budget int
	// Enter receives findings.
	Enter func([]tracker.Part)
}

// A Table has all series. Its methods may be called from several goroutines.
type Table struct {
	settings Settings
	families []family
	cells    int

	mu sync.Mutex
	// hosts are the routes of each host, with the labels of their canaries, and names the
	// hosts of names.
	hosts map[string]map[route][]string
	names map[string]string
	// series are all, units has them by the host's unit, and used their number by namespace.
	series map[labels]*series
	units  map[string]map[labels]struct{}
	used   map[string]int
	// full are the namespaces beyond their budget, and whether there is a finding of it.
	full map[string]bool
	// seen are the reports that were added and may come again.
	seen map[string]bool
	// reported is the number of requests that were reported, by worker.
	reported map[uint64]uint64
	// withoutIngress, replaced and lost are the numbers of requests that are not counted.
	withoutIngress, replaced, lost uint64
	// unreadable is the number of reports that could not be read.
	unreadable uint64
}

// A route is the labels that say which rule a request matched.
type route struct{ namespace, ingress, service, path string }

type labels struct {
	route
	host, canary, method, status string
}

// A series is the requests with equal labels.
type series struct {
	counts []uint64
	native []native
	// examples are by bucket of the time of a request, nil if no request had a trace.
	examples []example
}

// New returns an empty Table.
func New(s Settings) *Table {
	t := &Table{
		settings: s,
		hosts:    map[string]map[route][]string{}, names: map[string]string{},
		series: map[labels]*series{}, units: map[string]map[labels]struct{}{}, used: map[string]int{},
		full: map[string]bool{}, seen: map[string]bool{}, reported: map[uint64]uint64{},
	}
	t.families, t.cells = s.families()
	return t
}

// Run fetches reports until ctx ends. exchange deletes those that were seen, and returns those
// that there are.
func (t *Table) Run(ctx context.Context, exchange func(ctx context.Context, seen []string) (map[string][]byte, error)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// Without an answer NGINX may be starting; the next one has what is missing.
		if reports, err := exchange(ctx, t.added()); err == nil {
			t.Add(reports)
		}
	}
}

// added are the names of the reports that need not come again.
func (t *Table) added() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.seen))
}

// Settings are those that New got.
func (t *Table) Settings() Settings { return t.settings }

// Add adds reports, by name, except those of the last time. Names with a w have the total of a
// worker that has ended, which comes with or after its last report.
func (t *Table) Add(reports map[string][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ended []string
	for name, data := range reports {
		switch {
		case t.seen[name]:
		case strings.HasPrefix(name, "w"):
			ended = append(ended, name)
		default:
			t.addReport(data)
		}
	}
	for _, name := range ended {
		t.addTotal(reports[name])
	}
	clear(t.seen)
	for name := range reports {
		t.seen[name] = true
	}
	t.note()
}

func (t *Table) addReport(data []byte) {
	r, err := parse(data)
	if err != nil {
		t.unreadable++
		return
	}
	t.reported[r.worker] += r.requests()
	t.withoutIngress += r.withoutIngress
	for _, c := range r.series {
		if t.isServed(c.group) {
			t.seriesOf(c).add(c, t.settings)
		} else {
			t.replaced += c.requests()
		}
	}
}

// addTotal counts what a worker that has ended did not report.
func (t *Table) addTotal(data []byte) {
	of, err := parseTotal(data)
	if err != nil {
		t.unreadable++
		return
	}
	t.lost += of.requests - min(of.requests, t.reported[of.worker])
	delete(t.reported, of.worker)
}

// isServed reports whether a group's labels are those of a route that there is, and of one
// of its canaries if they name one.
func (t *Table) isServed(g group) bool {
	if g.Unit == "" {
		return true
	}
	if canaries, found := t.hosts[g.Unit][g.route()]; !found || g.Canary != "" && !slices.Contains(canaries, g.Canary) {
		return false
	}
	return !t.settings.PerHost || t.settings.AnyHost || g.Host == g.Unit || t.names[g.Host] == g.Unit
}

// seriesOf returns the series that requests belong to. It is that of others of the namespace if
// the namespace has too many.
func (t *Table) seriesOf(c counted) *series {
	l := c.labels(t.settings.StatusClasses)
	if found := t.series[l]; found != nil {
		return found
	}
	if t.used[c.Namespace] >= t.settings.Budget && c.Ingress != Others {
		if _, noted := t.full[c.Namespace]; !noted {
			t.full[c.Namespace] = false
		}
		return t.seriesOf(counted{group: group{Namespace: c.Namespace, Ingress: Others}, status: c.status})
	}
	made := &series{counts: make([]uint64, t.cells)}
	t.series[l] = made
	if t.units[c.Unit] == nil {
		t.units[c.Unit] = map[labels]struct{}{}
	}
	t.units[c.Unit][l] = struct{}{}
	if c.Ingress != Others {
		t.used[c.Namespace]++
	}
	return made
}

// prune removes the series of a unit that are no longer served.
func (t *Table) prune(unit string) {
	for l := range t.units[unit] {
		g := group{Unit: unit, Host: l.host, Namespace: l.namespace, Ingress: l.ingress, Service: l.service, Path: l.path, Canary: l.canary}
		if t.isServed(g) {
			continue
		}
		delete(t.series, l)
		delete(t.units[unit], l)
		if t.used[l.namespace]--; t.used[l.namespace] == 0 {
			delete(t.used, l.namespace)
			t.removeOthers(l.namespace)
		}
	}
	if len(t.units[unit]) == 0 {
		delete(t.units, unit)
	}
}

// removeOthers removes what was counted for a namespace beyond its budget.
func (t *Table) removeOthers(namespace string) {
	for l := range t.units[""] {
		if l.namespace == namespace && l.ingress == Others {
			delete(t.series, l)
			delete(t.units[""], l)
		}
	}
}

// fullNamespace is the owner of the finding about a namespace's budget.
type fullNamespace string

// note makes findings of the namespaces that have too many series, and resolves them.
func (t *Table) note() {
	if t.settings.Enter == nil || len(t.full) == 0 {
		return
	}
	var parts []tracker.Part
	for namespace, noted := range t.full {
		switch {
		case t.used[namespace] < t.settings.Budget:
			delete(t.full, namespace)
			parts = append(parts, tracker.Part{Owner: fullNamespace(namespace)})
		case !noted:
			parts = append(parts, tracker.Part{Owner: fullNamespace(namespace), Findings: []finding.Finding{t.finding(namespace)}})
			t.full[namespace] = true
		}
	}
	if len(parts) > 0 {
		t.settings.Enter(parts)
	}
}

func (t *Table) finding(namespace string) finding.Finding {
	object := "namespace/" + namespace
	if namespace == "" {
		object = "flag/--metrics-per-undefined-host"
	}
	return finding.Finding{
		Object: object, Field: "requests", Code: finding.TooMany,
		Message: fmt.Sprintf("more than %d series of request metrics; --metrics-series-per-namespace must be higher to have all", t.settings.Budget),
		Effect:  fmt.Sprintf("requests of further hosts, paths, methods and statuses are counted together, with ingress=%q", Others),
	}
}
