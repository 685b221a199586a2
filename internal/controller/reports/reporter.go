package reports

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/unit"
)

// A Reporter says what an edge is, and answers what its control asks.
type Reporter struct {
	// Status is what there is to say now, without Requests, and Requests are those since the start; nil if they are
	// not counted.
	Status   func(context.Context) Status
	Requests func() map[string]Counts
	// Holdings are what the workers of NGINX have of units.
	Holdings func(context.Context, []unit.Key) ([]dataplane.Holding, error)
	// Interval is that of looks at the Status.
	Interval time.Duration

	// reported are the requests that were.
	reported map[string]Counts
}

const (
	// Interval is the usual one.
	Interval = time.Second
	// answerTimeout bounds an answer.
	answerTimeout = 3 * time.Second
)

// Report reports over a connection until ctx or the connection ends.
func (r *Reporter) Report(ctx context.Context, connection grpc.ClientConnInterface) error {
	var looking sync.WaitGroup
	defer looking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := connection.NewStream(ctx, &description().Streams[0], "/"+serviceName+"/"+method)
	if err != nil {
		return fmt.Errorf("open the stream of reports: %w", err)
	}
	var sending sync.Mutex
	say := func(message fromEdge) error {
		sending.Lock()
		defer sending.Unlock()
		return send(stream, message)
	}
	looking.Go(func() { r.look(ctx, say) })
	for {
		var q question
		if err := receive(stream, &q); err != nil {
			return fmt.Errorf("receive questions: %w", err)
		}
		a := r.answer(ctx, q)
		err := say(fromEdge{Answer: a})
		if errors.Is(err, errTooLarge) {
			err = say(fromEdge{Answer: &answer{Number: a.Number, Problem: "NGINX's workers have too much to say: " + err.Error()}})
		}
		if err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
}

// look says the status again and again, until ctx ends or that fails.
func (r *Reporter) look(ctx context.Context, say func(fromEdge) error) {
	look := time.NewTicker(r.Interval)
	defer look.Stop()
	for {
		s := r.Status(ctx)
		s.bound()
		s.Requests = r.since()
		if ctx.Err() != nil {
			return
		}
		err := say(fromEdge{Status: &s})
		if errors.Is(err, errTooLarge) {
			s.Findings, s.MoreFindings = nil, s.MoreFindings+len(s.Findings)
			err = say(fromEdge{Status: &s})
		}
		if err != nil {
			return // Who receives gets to know why.
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

func (r *Reporter) answer(ctx context.Context, q question) *answer {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	holdings, err := r.Holdings(ctx, q.Units[:min(len(q.Units), MaxUnits)])
	for i := range holdings {
		h := &holdings[i]
		// What there is by namespace may be a lot, and no control shows it.
		h.State = dataplane.State{
			PID: h.State.PID, Generation: h.State.Generation, Revision: h.State.Revision, Loaded: h.State.Loaded, Draining: h.State.Draining,
			Accepting: h.State.Accepting, Ejected: h.State.Ejected,
		}
		for i := range h.Units {
			// Versions are asked for.
			h.Units[i].Payload = nil
		}
	}
	a := &answer{Number: q.Number, Holdings: holdings}
	if err != nil {
		a.Problem = cut(err.Error())
	}
	return a
}

// since are the requests that are not reported yet, of at most maxHosts hosts; the others are next.
func (r *Reporter) since() map[string]Counts {
	if r.Requests == nil {
		return nil
	}
	if r.reported == nil {
		r.reported = map[string]Counts{}
	}
	now := r.Requests()
	more := map[string]Counts{}
	// In no order, so that each host has its turn.
	for host, is := range now {
		was := r.reported[host]
		if was == is {
			continue
		}
		var differ Counts
		for i := range is {
			// A host that was gone counts from 0 again.
			if differ[i] = is[i]; is[i] >= was[i] {
				differ[i] = is[i] - was[i]
			}
		}
		if more[host] = differ; len(more) == maxHosts {
			break
		}
	}
	for host := range more {
		r.reported[host] = now[host]
	}
	maps.DeleteFunc(r.reported, func(host string, _ Counts) bool { _, found := now[host]; return !found })
	return more
}
