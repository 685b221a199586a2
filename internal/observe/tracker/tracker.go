// Package tracker keeps the current findings of all owners, and logs each of
// them when it is added and when it is resolved.
//
// The log, the metric and All show the same findings. The package must not know
// what they are about.
package tracker

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/finding"
)

// maxLogged is how many findings of one update are logged one by one, both of
// those added and of those resolved. The log has the number of the others.
// Without a bound, a single change that affects every host of a large cluster
// would delay the next ones.
const maxLogged = 1000

// A Tracker has the findings of all owners. Its methods may be called from
// several goroutines.
type Tracker struct {
	log    *slog.Logger
	byCode *prometheus.GaugeVec

	notify func(added []finding.Finding)

	// updating is held during an update until it is logged, so that the log has
	// updates in their order.
	updating sync.Mutex
	// mu guards the fields below, and is never held during output.
	mu      sync.Mutex
	byOwner map[any][]finding.Finding
	// owners counts the owners of a finding.
	owners map[finding.Finding]int
	codes  map[finding.Code]int
}

// New returns an empty Tracker, which sets byCode to the number of findings of
// each code.
func New(log *slog.Logger, byCode *prometheus.GaugeVec) *Tracker {
	return &Tracker{
		log: log, byCode: byCode,
		byOwner: map[any][]finding.Finding{}, owners: map[finding.Finding]int{}, codes: map[finding.Code]int{},
	}
}

// A Part is all current findings of an owner. An owner is a comparable value;
// owners of different types are never equal. The Tracker keeps the slice.
type Part struct {
	Owner    any
	Findings []finding.Finding
}

// Notify passes the added findings of each update to a function, sorted, in the
// order of the updates. The function must not block and must not call Update.
// Notify must be called before the first update.
func (t *Tracker) Notify(added func([]finding.Finding)) { t.notify = added }

// Update replaces the findings of some owners in one step: a finding that moves
// from one owner to another is neither added nor removed.
func (t *Tracker) Update(parts []Part) {
	t.updating.Lock()
	defer t.updating.Unlock()
	added, removed := t.replace(parts)
	added, removed = finding.Sort(added), finding.Sort(removed)
	t.logChanges(added, removed)
	if t.notify != nil && len(added) > 0 {
		t.notify(added)
	}
}

// All returns the current findings, sorted.
func (t *Tracker) All() []finding.Finding {
	t.mu.Lock()
	all := make([]finding.Finding, 0, len(t.owners))
	for f := range t.owners {
		all = append(all, f)
	}
	t.mu.Unlock()
	return finding.Sort(all)
}

// Codes returns the number of current findings of each code that has any.
func (t *Tracker) Codes() map[finding.Code]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.codes)
}

// replace returns the findings that had no owner before, and those that have
// none now.
func (t *Tracker) replace(parts []Part) (added, removed []finding.Finding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	difference := map[finding.Finding]int{}
	for _, p := range parts {
		was := t.byOwner[p.Owner]
		if slices.Equal(was, p.Findings) {
			continue
		}
		if t.byOwner[p.Owner] = p.Findings; len(p.Findings) == 0 {
			delete(t.byOwner, p.Owner)
		}
		for _, f := range p.Findings {
			difference[f]++
		}
		for _, f := range was {
			difference[f]--
		}
	}
	for f, n := range difference {
		was := t.owners[f]
		t.owners[f] = was + n
		switch {
		case was == 0 && n > 0:
			added = append(added, f)
			t.codes[f.Code]++
		case was > 0 && was+n == 0:
			removed = append(removed, f)
			t.codes[f.Code]--
		}
		if was+n == 0 {
			delete(t.owners, f)
		}
		t.byCode.WithLabelValues(string(f.Code)).Set(float64(t.codes[f.Code]))
		if t.codes[f.Code] == 0 {
			delete(t.codes, f.Code)
		}
	}
	return added, removed
}

// subjectOf is what a finding is about. If one finding replaces another with the
// same subject, only the new one is logged.
func subjectOf(f finding.Finding) [3]string { return [3]string{f.Object, f.Field, string(f.Code)} }

func (t *Tracker) logChanges(added, removed []finding.Finding) {
	taken := make(map[[3]string]bool, len(added))
	for _, f := range added {
		taken[subjectOf(f)] = true
	}
	removed = slices.DeleteFunc(removed, func(f finding.Finding) bool { return taken[subjectOf(f)] })
	for _, f := range removed[:min(len(removed), maxLogged)] {
		was, _, _ := strings.Cut(f.Message, "\n")
		t.log.Info("finding resolved", "object", f.Object, "field", f.Field, "code", f.Code, "was", was)
	}
	for _, f := range added[:min(len(added), maxLogged)] {
		t.log.Warn(f.Message, "object", f.Object, "field", f.Field, "code", f.Code, "effect", f.Effect)
	}
	t.count(slog.LevelInfo, "more findings were resolved, which are not logged one by one", removed)
	t.count(slog.LevelWarn, "more findings appeared, which are not logged one by one; /v1/findings on the controller's socket has all", added)
}

// count logs, by code, the number of findings that were not logged one by one.
func (t *Tracker) count(level slog.Level, text string, fs []finding.Finding) {
	byCode := map[finding.Code]int{}
	for _, f := range fs[min(len(fs), maxLogged):] {
		byCode[f.Code]++
	}
	for _, code := range slices.Sorted(maps.Keys(byCode)) {
		t.log.Log(context.Background(), level, text, "code", code, "not_logged", byCode[code])
	}
}
