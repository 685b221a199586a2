// Package tracing exports spans of requests to a collector of OpenTelemetry.
//
// NGINX's workers make spans and report them. The package reads reports, and exports with the
// SDK of OpenTelemetry. It must not know how reports are fetched, nor which requests have
// spans.
package tracing

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/headgate/headgate/internal/model"
)

const (
	// interval is how often reports are fetched, and also how long spans may wait for room.
	interval = time.Second
	// linger is how long reports are fetched after tracing was switched off: workers have
	// some.
	linger = 10 * time.Second
	// many is the number of reports with which others may wait in the data plane, and
	// maxRounds how often these are fetched at once.
	many      = 50
	maxRounds = 20
)

// Settings say who exports.
type Settings struct {
	// Version is the one of this program. Namespace and Pod are those of this process, empty if
	// unknown.
	Version, Namespace, Pod string
	Log                     *slog.Logger
}

// An Exchange deletes reports that were seen, and returns those that there are, by name.
type Exchange func(ctx context.Context, seen []string) (map[string][]byte, error)

// An Exporter exports spans once it runs and is configured.
type Exporter struct {
	settings Settings
	counts   *counts
	log      *failureLog
	// wanted has the newest settings that are not applied.
	wanted chan model.Tracing
	// flushed is closed when nothing will be exported any more.
	flushed chan struct{}
	// interval is the constant, and linger ends after the one of that name, but in tests.
	interval time.Duration
	linger   func() <-chan time.Time

	// What follows belongs to Run. current are the settings that sender exports by; without a
	// collector there is none, or it is about to end.
	current  model.Tracing
	sender   *sender
	senders  []*sender
	resource *resource.Resource
	// seen are the reports that were read and may come again.
	seen map[string]bool
}

// New returns an Exporter.
func New(s Settings) *Exporter {
	// The SDK logs values of its variables, such as credentials, if it can't read them. What it
	// would say, checkEnvironment says.
	otel.SetLogger(logr.Discard())
	return &Exporter{
		settings: s, counts: newCounts(), log: &failureLog{log: s.Log},
		wanted: make(chan model.Tracing, 1), flushed: make(chan struct{}), seen: map[string]bool{}, interval: interval,
		linger: func() <-chan time.Time { return time.After(linger) },
	}
}

// Configure sets how spans are exported from now on. It does not block, and must not be called
// by several goroutines at once.
func (e *Exporter) Configure(t model.Tracing) {
	select {
	case <-e.wanted:
	default:
	}
	e.wanted <- t
}

// Run fetches reports until ctx ends, and then once more. What waits for its export is exported
// after that: see Flush.
func (e *Exporter) Run(ctx context.Context, exchange Exchange) {
	tick := time.NewTicker(e.interval)
	defer tick.Stop()
	var off <-chan time.Time
	for {
		var due <-chan time.Time
		if e.sender != nil {
			due = tick.C
		}
		select {
		case <-ctx.Done():
			e.end(exchange)
			return
		case t := <-e.wanted:
			if e.apply(t) {
				off = nil
			} else if e.sender != nil && off == nil {
				off = e.linger()
			}
		case <-off:
			e.replace(nil)
			off = nil
		case <-due:
			e.fetch(ctx, exchange)
		}
	}
}

// Flush waits until everything is exported after the end of Run, or ctx ends. It takes seconds at
// most.
func (e *Exporter) Flush(ctx context.Context) {
	select {
	case <-e.flushed:
	case <-ctx.Done():
	}
}

// apply applies settings, and reports whether there is a collector by them.
func (e *Exporter) apply(t model.Tracing) bool {
	if !hasCollector(t) {
		e.current = model.Tracing{}
		return false
	}
	if e.sender != nil && sameExport(e.current, t) {
		return true
	}
	e.current = t
	to, exporter, err := e.newExporter(t)
	if err != nil {
		e.settings.Log.Error("spans can't be exported; dropping them", "err", err)
		e.replace(startSender(refuse{err}, t, e.counts, func(int, error) {}))
		return true
	}
	e.replace(startSender(exporter, t, e.counts, func(failed int, err error) { e.log.note(to, failed, err) }))
	return true
}

// newExporter returns an exporter and where it exports to.
func (e *Exporter) newExporter(t model.Tracing) (to endpoint, exporter sdktrace.SpanExporter, err error) {
	if e.resource, err = e.settings.newResource(t.ServiceName); err != nil {
		return to, nil, err
	}
	if to, err = newEndpoint(t); err != nil {
		return to, nil, err
	}
	exporter, err = to.connect()
	return to, exporter, err
}

// sameExport reports whether two settings have spans exported in the same way.
func sameExport(a, b model.Tracing) bool {
	return a.Collector == b.Collector && a.ServiceName == b.ServiceName && a.QueueSize == b.QueueSize && a.BatchSize == b.BatchSize && a.Delay == b.Delay
}

// replace has a sender export from now on, nil for none. The one before exports what it has.
func (e *Exporter) replace(by *sender) {
	if e.sender != nil {
		e.sender.close(flushLimit)
	}
	e.senders = slices.DeleteFunc(e.senders, func(s *sender) bool {
		select {
		case <-s.ended:
			return true
		default:
			return false
		}
	})
	if e.sender = by; by != nil {
		e.senders = append(e.senders, by)
	}
}

// end exports what there is in the data plane and here.
func (e *Exporter) end(exchange Exchange) {
	if e.sender != nil {
		ctx, cancel := context.WithTimeout(context.Background(), interval)
		e.fetch(ctx, exchange)
		cancel()
		e.replace(nil)
	}
	go func() {
		for _, s := range e.senders {
			<-s.ended
		}
		close(e.flushed)
	}()
}

// fetch fetches reports, and more of them while there are many.
func (e *Exporter) fetch(ctx context.Context, exchange Exchange) {
	for range maxRounds {
		reports, err := exchange(ctx, slices.Collect(maps.Keys(e.seen)))
		if err != nil {
			// NGINX may be starting; the next response has what is missing.
			return
		}
		if e.add(ctx, reports); len(reports) < many {
			return
		}
	}
}

// add has the spans of reports wait for their export, except those of the last time. If there are
// too many, it waits a little for room: no request waits with it.
func (e *Exporter) add(ctx context.Context, reports map[string][]byte) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), interval)
	defer cancel()
	for name, data := range reports {
		if e.seen[name] {
			continue
		}
		read, err := Read(data)
		if err != nil {
			e.counts.drop("unreadable", 1)
			continue
		}
		e.counts.drop("worker", int(min(read.Dropped, math.MaxInt32)))
		e.counts.drop("unreadable", int(read.Unreadable))
		for _, span := range read.Spans {
			span.Resource = e.resource
			span.InstrumentationScope = instrumentation.Scope{Name: "headgate", Version: e.settings.Version}
			e.sender.add(ctx, waiting{span.Snapshot(), textBytes(span)})
		}
	}
	clear(e.seen)
	for name := range reports {
		e.seen[name] = true
	}
}
