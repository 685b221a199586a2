package tracing

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"golang.org/x/sync/semaphore"

	"github.com/headgate/headgate/internal/model"
)

const (
	// exportLimit is how long the export of a batch may take, with all its retries.
	exportLimit = 30 * time.Second
	// flushLimit is how long what waits for its export may take at the end.
	flushLimit = 5 * time.Second
	// maxWaiting limits the bytes of spans that wait, and spanBytes is what one takes beside its
	// text.
	maxWaiting = 128 << 20
	spanBytes  = 2 << 10
	// maxBatch is how many bytes of text end a batch: by default, collectors take 4 MiB by gRPC at
	// once.
	maxBatch = 3 << 20
)

// partialSuccess begins the exporter's error for a batch that the collector took in part.
const partialSuccess = "OTLP partial success: "

// A waiting span waits for its export. bytes is the size of its text.
type waiting struct {
	sdktrace.ReadOnlySpan
	bytes int
}

// weight is the memory that a span takes while it waits.
func (w waiting) weight() int64 { return int64(min(w.bytes+spanBytes, maxWaiting)) }

// textBytes is the size of the text of a span.
func textBytes(span tracetest.SpanStub) int {
	bytes := len(span.Name)
	for _, a := range span.Attributes {
		bytes += len(a.Key) + len(a.Value.AsString())
	}
	return bytes
}

// A sender has spans wait for others, and exports them. One goroutine adds, another one
// exports.
type sender struct {
	to    sdktrace.SpanExporter
	queue chan waiting
	// room is what is left of maxWaiting.
	room    *semaphore.Weighted
	batch   int
	delay   time.Duration
	counts  *counts
	outcome func(failed int, err error)
	// cancel ends an export at once, and ended is closed when there will be none.
	cancel context.CancelFunc
	ended  chan struct{}
}

// startSender returns a sender that exports until it is closed.
func startSender(to sdktrace.SpanExporter, t model.Tracing, c *counts, outcome func(int, error)) *sender {
	ctx, cancel := context.WithCancel(context.Background())
	s := &sender{
		to: to, queue: make(chan waiting, max(t.QueueSize, 1)), room: semaphore.NewWeighted(maxWaiting), batch: max(t.BatchSize, 1), delay: t.Delay,
		counts: c, outcome: outcome, cancel: cancel, ended: make(chan struct{}),
	}
	go s.run(ctx)
	return s
}

// add has a span wait for its export. If there is no room until ctx ends, it is dropped.
func (s *sender) add(ctx context.Context, span waiting) {
	if !s.room.TryAcquire(span.weight()) && s.room.Acquire(ctx, span.weight()) != nil {
		s.counts.drop("queue", 1)
		return
	}
	select {
	case s.queue <- span:
		return
	default:
	}
	select {
	case s.queue <- span:
	case <-ctx.Done():
		s.room.Release(span.weight())
		s.counts.drop("queue", 1)
	}
}

// close has what waits exported, for a limited time. Nothing may be added then.
func (s *sender) close(limit time.Duration) {
	close(s.queue)
	stop := time.AfterFunc(limit, s.cancel)
	go func() {
		<-s.ended
		stop.Stop()
		s.cancel()
	}()
}

func (s *sender) run(ctx context.Context) {
	defer close(s.ended)
	for batch := s.next(); len(batch) > 0; batch = s.next() {
		s.export(ctx, batch)
	}
	// Nothing is under way, and the connection is closed in any case.
	_ = s.to.Shutdown(ctx)
}

// next waits until there is a batch, or the first of its spans has waited long enough. It is
// empty if the sender is closed.
func (s *sender) next() []sdktrace.ReadOnlySpan {
	first, open := <-s.queue
	if !open {
		return nil
	}
	batch, bytes := make([]sdktrace.ReadOnlySpan, 0, s.batch), 0
	take := func(span waiting) {
		s.room.Release(span.weight())
		batch, bytes = append(batch, span.ReadOnlySpan), bytes+span.bytes
	}
	take(first)
	late := time.NewTimer(s.delay)
	defer late.Stop()
	for len(batch) < s.batch && bytes < maxBatch {
		select {
		case span, open := <-s.queue:
			if !open {
				return batch
			}
			take(span)
		case <-late.C:
			return batch
		}
	}
	return batch
}

func (s *sender) export(ctx context.Context, batch []sdktrace.ReadOnlySpan) {
	ctx, cancel := context.WithTimeout(ctx, exportLimit)
	defer cancel()
	err := s.to.ExportSpans(ctx, batch)
	failed := rejected(err, len(batch))
	s.counts.exported.Add(float64(len(batch) - failed))
	s.counts.drop("export", failed)
	s.outcome(failed, err)
}

// rejected is how many spans of a batch the collector did not take. It may take some and say how
// many it did not; the exporter has no other form for that than its text.
func rejected(err error, all int) int {
	if err == nil {
		return 0
	}
	text := err.Error()
	if !strings.Contains(text, partialSuccess) {
		return all
	}
	found := regexp.MustCompile(`\((\d+) spans rejected\)`).FindStringSubmatch(text)
	if len(found) < 2 {
		return all
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		return all
	}
	return min(n, all)
}
