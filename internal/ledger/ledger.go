// Package ledger keeps the findings that there are now, whoever has them, and
// tells each of them in the log when it comes and when it goes.
//
// The log, the metric and All show the same findings. It must not know what
// they are about.
package ledger

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

// longest is how many findings that came, or went, in one entry are logged one
// by one. Of the others the log has the number. Without a bound, one change
// that touches every host of a large cluster would hold up the next ones.
const longest = 1000

// A Ledger is the findings of all owners. Its methods may be called from
// several goroutines.
type Ledger struct {
	log    *slog.Logger
	byCode *prometheus.GaugeVec

	follow func(came []finding.Finding)

	// entering is held from an entry until it is told, so that the log has
	// entries in their order.
	entering sync.Mutex
	// mu guards what is below, and is never held while something is written.
	mu      sync.Mutex
	byOwner map[any][]finding.Finding
	// owners counts, for a finding, how often owners have it.
	owners map[finding.Finding]int
	codes  map[finding.Code]int
}

// New makes an empty Ledger, which sets byCode to the number of findings of
// each code.
func New(log *slog.Logger, byCode *prometheus.GaugeVec) *Ledger {
	return &Ledger{
		log: log, byCode: byCode,
		byOwner: map[any][]finding.Finding{}, owners: map[finding.Finding]int{}, codes: map[finding.Code]int{},
	}
}

// A Part is all findings that an owner has now. An owner is a comparable
// value; owners of different types are never the same. The findings belong to
// the ledger from then on.
type Part struct {
	Owner    any
	Findings []finding.Finding
}

// Follow has each entry's new findings told to a function too, sorted, in the
// order of the entries. It must not wait, and not enter anything. It is called
// before the first entry.
func (l *Ledger) Follow(came func([]finding.Finding)) { l.follow = came }

// Enter replaces the findings of some owners. It is one step: what leaves one
// owner and comes to another in it neither came nor went.
func (l *Ledger) Enter(parts []Part) {
	l.entering.Lock()
	defer l.entering.Unlock()
	came, gone := l.replace(parts)
	came, gone = finding.Sort(came), finding.Sort(gone)
	l.tell(came, gone)
	if l.follow != nil && len(came) > 0 {
		l.follow(came)
	}
}

// All returns the findings that there are now, sorted.
func (l *Ledger) All() []finding.Finding {
	l.mu.Lock()
	all := make([]finding.Finding, 0, len(l.owners))
	for f := range l.owners {
		all = append(all, f)
	}
	l.mu.Unlock()
	return finding.Sort(all)
}

// replace returns the findings that nobody had before, and those that nobody
// has any more.
func (l *Ledger) replace(parts []Part) (came, gone []finding.Finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := map[finding.Finding]int{}
	add := func(fs []finding.Finding, n int) {
		for _, f := range fs {
			if _, ok := before[f]; !ok {
				before[f] = l.owners[f]
			}
			l.owners[f] += n
		}
	}
	for _, p := range parts {
		was := l.byOwner[p.Owner]
		if slices.Equal(was, p.Findings) {
			continue
		}
		if l.byOwner[p.Owner] = p.Findings; len(p.Findings) == 0 {
			delete(l.byOwner, p.Owner)
		}
		add(p.Findings, 1)
		add(was, -1)
	}
	for f, n := range before {
		switch is := l.owners[f]; {
		case is > 0 && n == 0:
			came = append(came, f)
			l.codes[f.Code]++
		case is == 0 && n > 0:
			gone = append(gone, f)
			l.codes[f.Code]--
		}
		if l.owners[f] == 0 {
			delete(l.owners, f)
		}
		l.byCode.WithLabelValues(string(f.Code)).Set(float64(l.codes[f.Code]))
	}
	return came, gone
}

// A place is what a finding is about. When one goes and another comes there,
// the one that comes says enough.
type place struct {
	object, field string
	code          finding.Code
}

func placeOf(f finding.Finding) place { return place{f.Object, f.Field, f.Code} }

func (l *Ledger) tell(came, gone []finding.Finding) {
	taken := make(map[place]bool, len(came))
	for _, f := range came {
		taken[placeOf(f)] = true
	}
	gone = slices.DeleteFunc(gone, func(f finding.Finding) bool { return taken[placeOf(f)] })
	for _, f := range gone[:min(len(gone), longest)] {
		was, _, _ := strings.Cut(f.Message, "\n")
		l.log.Info("a finding is gone", "object", f.Object, "field", f.Field, "code", f.Code, "was", was)
	}
	for _, f := range came[:min(len(came), longest)] {
		l.log.Warn(f.Message, "object", f.Object, "field", f.Field, "code", f.Code, "effect", f.Effect)
	}
	l.count(slog.LevelInfo, "more findings are gone than are logged one by one", gone)
	l.count(slog.LevelWarn, "there are more new findings than are logged one by one; /v1/findings on the controller's socket has all", came)
}

// count logs, by code, how many findings were not logged one by one.
func (l *Ledger) count(level slog.Level, text string, fs []finding.Finding) {
	byCode := map[finding.Code]int{}
	for _, f := range fs[min(len(fs), longest):] {
		byCode[f.Code]++
	}
	for _, code := range slices.Sorted(maps.Keys(byCode)) {
		l.log.Log(context.Background(), level, text, "code", code, "not_logged", byCode[code])
	}
}
