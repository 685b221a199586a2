package dataplane

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/headgate/headgate/internal/unit"
)

// A Holding is what one worker reports about itself and about units.
type Holding struct {
	State State
	// Units are in the order of the query, empty for units that do not exist.
	Units []Unit
}

const (
	// together is the number of connections that are opened at once: the kernel
	// gives most single ones to the same worker.
	together = 16
	// rounds is how often that is done at most.
	rounds = 8
)

// Holdings queries the workers that accept connections, each on a connection of
// its own. The kernel decides which worker gets a connection, so workers can be
// missing. Without an error, there is at least one holding.
func Holdings(ctx context.Context, socket string, names []unit.Key) ([]Holding, error) {
	var mu sync.Mutex
	found := map[int]Holding{}
	var failed error
	ask := func() {
		client := New(socket)
		defer client.CloseIdle()
		holding, err := client.holding(ctx, names)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = err
			return
		}
		found[holding.State.PID] = holding
	}
	for range rounds {
		var group sync.WaitGroup
		for range together {
			group.Go(ask)
		}
		group.Wait()
		if complete(found) || ctx.Err() != nil {
			break
		}
	}
	if len(found) == 0 {
		return nil, failed
	}
	return slices.Collect(maps.Values(found)), nil
}

// complete reports whether all workers that accept connections were found.
func complete(found map[int]Holding) bool {
	for _, h := range found {
		for _, worker := range h.State.Accepting {
			if _, ok := found[worker.PID]; !ok {
				return false
			}
		}
	}
	return len(found) > 0
}

// holding queries one worker: all responses arrive on one connection.
func (c *Client) holding(ctx context.Context, names []unit.Key) (Holding, error) {
	state, err := c.State(ctx)
	if err != nil {
		return Holding{}, err
	}
	h := Holding{State: state, Units: make([]Unit, len(names))}
	for i, name := range names {
		u, err := c.Unit(ctx, name)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return Holding{}, err
		}
		if u.Worker.PID != state.PID {
			return Holding{}, errors.New("the worker closed the connection")
		}
		h.Units[i] = u
	}
	return h, nil
}
