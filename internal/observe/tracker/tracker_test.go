package tracker

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/observe/metrics"
)

// A bench is a Tracker with the log since the last check.
type bench struct {
	*Tracker
	t       *testing.T
	metrics *metrics.Metrics
	logged  strings.Builder
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, metrics: metrics.New()}
	bare := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	b.Tracker = New(slog.New(slog.NewTextHandler(&b.logged, &slog.HandlerOptions{ReplaceAttr: bare})), b.metrics.Findings)
	return b
}

func (b *bench) wantLog(lines ...string) {
	b.t.Helper()
	got := strings.Split(strings.TrimSuffix(b.logged.String(), "\n"), "\n")
	b.logged.Reset()
	if diff := cmp.Diff(lines, got); diff != "" {
		b.t.Errorf("log: %s", diff)
	}
}

func (b *bench) wantSilence() { b.t.Helper(); b.wantLog("") }

// want checks that All, Codes and the metric show these findings.
func (b *bench) want(all ...finding.Finding) {
	b.t.Helper()
	if diff := cmp.Diff(append([]finding.Finding{}, all...), b.All()); diff != "" {
		b.t.Errorf("all: %s", diff)
	}
	counts := map[finding.Code]int{}
	for _, f := range all {
		counts[f.Code]++
	}
	if diff := cmp.Diff(counts, b.Codes()); diff != "" {
		b.t.Errorf("codes: %s", diff)
	}
	for _, code := range []finding.Code{finding.InvalidValue, finding.Conflict} {
		n := counts[code]
		if got := testutil.ToFloat64(b.metrics.Findings.WithLabelValues(string(code))); int(got) != n {
			b.t.Errorf("the metric has %v of %s, want %d", got, code, n)
		}
	}
}

func part(owner any, fs ...finding.Finding) Part { return Part{owner, fs} }

var (
	invalid  = finding.Finding{Object: "ingress/default/a", Field: "x", Code: finding.InvalidValue, Message: "bad\nmore", Effect: "none"}
	conflict = finding.Finding{Object: "ingress/default/a", Field: "y", Code: finding.Conflict, Message: "lost", Effect: "not served"}
)

const (
	invalidAdded    = `level=WARN msg="bad\nmore" object=ingress/default/a field=x code=InvalidValue effect=none`
	invalidResolved = `level=INFO msg="finding resolved" object=ingress/default/a field=x code=InvalidValue was=bad`
	conflictAdded   = `level=WARN msg=lost object=ingress/default/a field=y code=Conflict effect="not served"`
)

// A finding of several owners is one finding: it is logged when the first owner
// has it, and when the last one does not have it any more.
func TestOneOfSeveralOwners(t *testing.T) {
	b := newBench(t)
	b.Update([]Part{part("one", invalid), part("two", invalid, conflict), part("three")})
	b.wantLog(invalidAdded, conflictAdded)
	b.want(invalid, conflict)
	b.Update([]Part{part("one", invalid), part("two", invalid, conflict)})
	b.Update([]Part{part("three", invalid)})
	b.Update([]Part{part("one")})
	b.wantSilence()
	b.want(invalid, conflict)
	b.Update([]Part{part("two", conflict), part("three")})
	b.wantLog(invalidResolved)
	b.want(conflict)
	b.Update([]Part{part("two", invalid, conflict)})
	b.wantLog(invalidAdded)
	b.want(invalid, conflict)
}

// A finding that moves from one owner to another is not logged.
func TestMovesAreSilent(t *testing.T) {
	b := newBench(t)
	b.Update([]Part{part("one", invalid)})
	b.wantLog(invalidAdded)
	b.Update([]Part{part("one"), part("two", invalid)})
	b.Update([]Part{part("one", invalid), part("two")})
	b.wantSilence()
	b.want(invalid)
}

// If an owner is in an update twice, the last part counts.
func TestTheLastPartCounts(t *testing.T) {
	b := newBench(t)
	b.Update([]Part{part("one", invalid), part("one")})
	b.wantSilence()
	b.want()
	b.Update([]Part{part("one", conflict), part("one", invalid)})
	b.wantLog(invalidAdded)
	b.want(invalid)
}

// Owners of different types are different.
func TestOwnersHaveTypes(t *testing.T) {
	type name string
	b := newBench(t)
	b.Update([]Part{part("one", invalid), part(name("one"), conflict)})
	b.want(invalid, conflict)
}

func TestTheOneThatComesSaysEnough(t *testing.T) {
	b := newBench(t)
	b.Update([]Part{part("one", invalid)})
	b.wantLog(invalidAdded)
	worse := invalid
	worse.Message = "worse"
	b.Update([]Part{part("one", worse)})
	b.wantLog(`level=WARN msg=worse object=ingress/default/a field=x code=InvalidValue effect=none`)
	b.want(worse)
}

func TestFloodsAreCounted(t *testing.T) {
	b := newBench(t)
	var flood []finding.Finding
	for i := range maxLogged {
		flood = append(flood, finding.Finding{Object: fmt.Sprintf("ingress/default/b%04d", i), Code: finding.InvalidValue, Message: "bad"})
	}
	late := conflict
	late.Object = "ingress/default/c"
	b.Update([]Part{part("one", append(flood, late)...), part("two", conflict)})
	lines := strings.Split(strings.TrimSuffix(b.logged.String(), "\n"), "\n")
	b.logged.Reset()
	if len(lines) != maxLogged+2 || lines[0] != conflictAdded {
		t.Fatalf("%d lines, the first: %s", len(lines), lines[0])
	}
	const more = `level=WARN msg="more findings appeared, which are not logged one by one; /v1/findings on the controller's socket has all" code=`
	if diff := cmp.Diff([]string{more + "Conflict not_logged=1", more + "InvalidValue not_logged=1"}, lines[maxLogged:]); diff != "" {
		t.Error(diff)
	}
	b.want(append(append([]finding.Finding{conflict}, flood...), late)...)
	b.Update([]Part{part("one", flood...)})
	b.wantLog(`level=INFO msg="finding resolved" object=ingress/default/c field=y code=Conflict was=lost`)
}

// Readers see whole updates.
func TestReadersMeetWholeEntries(t *testing.T) {
	b := newBench(t)
	b.log = slog.New(slog.DiscardHandler)
	var writers sync.WaitGroup
	for n := range 2 {
		writers.Go(func() {
			for i := range 500 {
				other := invalid
				other.Object, other.Message = fmt.Sprint(n), fmt.Sprint(i)
				second := other
				second.Field = "second"
				b.Update([]Part{part(n, other), part(fmt.Sprint(n), second)})
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for {
		counts := map[string]int{}
		for _, f := range b.All() {
			counts[f.Object+" "+f.Message]++
		}
		for which, n := range counts {
			if n != 2 {
				t.Fatalf("%d findings of update %s, want 2", n, which)
			}
		}
		select {
		case <-done:
			if len(b.All()) != 4 {
				t.Errorf("%d findings are left, want 4", len(b.All()))
			}
			return
		default:
		}
	}
}

func BenchmarkAll(b *testing.B) {
	l := New(slog.New(slog.DiscardHandler), metrics.New().Findings)
	fs := make([]finding.Finding, 10000)
	for i := range fs {
		fs[i] = finding.Finding{Object: fmt.Sprintf("ingress/default/b%04d", i), Code: finding.InvalidValue, Message: "bad"}
	}
	l.Update([]Part{{"one", fs}})
	for b.Loop() {
		l.All()
	}
}

// Notify reports the added findings, in order, and nothing else.
func TestNotify(t *testing.T) {
	b := newBench(t)
	var added []string
	b.Notify(func(fs []finding.Finding) {
		for _, f := range fs {
			added = append(added, f.Object)
		}
		added = append(added, ".")
	})
	one, two := finding.Finding{Object: "a"}, finding.Finding{Object: "b"}
	b.Update([]Part{{"x", []finding.Finding{two}}, {"y", []finding.Finding{one}}})
	b.Update([]Part{{"x", nil}, {"z", []finding.Finding{two}}})
	b.Update([]Part{{"y", nil}})
	b.Update([]Part{{"y", []finding.Finding{one}}})
	if got := strings.Join(added, " "); got != "a b . a ." {
		t.Errorf("reported were %s", got)
	}
}
