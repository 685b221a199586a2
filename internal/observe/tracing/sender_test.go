package tracing

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/headgate/headgate/internal/model"
)

// held is a collector that says how many spans a batch has, and takes it when it is released.
type held struct {
	batches chan int
	release chan struct{}
}

func (h held) ExportSpans(_ context.Context, batch []sdktrace.ReadOnlySpan) error {
	h.batches <- len(batch)
	<-h.release
	return nil
}

func (held) Shutdown(context.Context) error { return nil }

// TestBytesThatWait: however few spans there are, those that wait have a maximum of bytes, and so do
// batches.
func TestBytesThatWait(t *testing.T) {
	h, c := held{make(chan int, 1), make(chan struct{})}, newCounts()
	s := startSender(h, model.Tracing{QueueSize: 1000, BatchSize: 100, Delay: time.Hour}, c, func(int, error) {})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	sized := func(bytes int) waiting { return waiting{tracetest.SpanStub{}.Snapshot(), bytes} }
	dropped := func() float64 { return testutil.ToFloat64(c.dropped.WithLabelValues("queue")) }

	s.add(gone, sized(maxBatch))
	got := []int{<-h.batches}
	// The batch is under way: what is added waits.
	for _, bytes := range []int{maxBatch - 2, 1, 1, maxWaiting / 2, maxWaiting / 4} {
		s.add(gone, sized(bytes))
	}
	if n := dropped(); n != 0 {
		t.Errorf("%v spans are dropped although there is room", n)
	}
	s.add(gone, sized(maxWaiting/4))
	if n := dropped(); n != 1 {
		t.Errorf("%v spans are dropped, want the one without room", n)
	}
	for range 3 {
		h.release <- struct{}{}
		got = append(got, <-h.batches)
	}
	h.release <- struct{}{}
	if !slices.Equal(got, []int{1, 3, 1, 1}) {
		t.Errorf("batches of %d spans", got)
	}
	// One with more than the maximum takes all of the room, which is free again.
	s.add(gone, sized(2*maxWaiting))
	if <-h.batches; dropped() != 1 {
		t.Error("no room was given back")
	}
	s.close(time.Hour)
	h.release <- struct{}{}
	<-s.ended
	if n := testutil.ToFloat64(c.exported); n != 7 {
		t.Errorf("%v spans are exported, want 7", n)
	}
}
