package dataplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/headgate/headgate/internal/unit"
)

// A frame that a worker of another generation rejects is sent to others: for about
// 100 ms after a reload, old workers still accept connections.
const (
	tries = 8
	pause = 20 * time.Millisecond
)

// A Result is how far a push got.
type Result struct {
	// Applied is the number of changes that were applied, from the first one on.
	Applied int
	// Revision and Memory are those of the last applied frame.
	Revision int64
	Memory   Memory
}

// Push writes changes in their order into a numbered set of dictionaries, for a
// generation, in as many frames as necessary. Changes that were applied before an
// error stay, and Result counts them. A change of which some parts are missing has
// no effect, and is sent again from its start.
//
// The errors are ErrElsewhere, ErrFull, ErrUnreachable, *RejectedError, or a change
// that does not fit into a frame, in which case nothing was sent.
func (c *Client) Push(ctx context.Context, dictionary, generation int, changes []unit.Change) (Result, error) {
	for _, c := range changes {
		if err := check(c); err != nil {
			return Result{}, fmt.Errorf("packing units: %w", err)
		}
	}
	var result Result
	for f := range frames(dictionary, generation, changes) {
		var answer struct {
			Revision int64  `json:"revision"`
			Memory   Memory `json:"memory"`
		}
		if err := c.apply(ctx, f.body, &answer); err != nil {
			return result, fmt.Errorf("pushing units, %[2]d of %[1]d applied: %[3]w", len(changes), result.Applied, err)
		}
		result = Result{Applied: f.entries, Revision: answer.Revision, Memory: answer.Memory}
	}
	return result, nil
}

// apply sends one frame, to another worker if necessary.
func (c *Client) apply(ctx context.Context, body []byte, answer any) error {
	for try := 1; ; try++ {
		err := c.do(ctx, http.MethodPost, "/v1/apply", body, answer)
		if try == tries || !errors.Is(err, ErrElsewhere) {
			return err
		}
		c.CloseIdle()
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// Loaded reports to the data plane that the first full load is complete.
func (c *Client) Loaded(ctx context.Context) error {
	if err := c.do(ctx, http.MethodPut, "/v1/loaded", nil, &struct{}{}); err != nil {
		return fmt.Errorf("marking the data plane as loaded: %w", err)
	}
	return nil
}

// Draining makes workers close HTTP/1 connections after their next response, or
// not.
func (c *Client) Draining(ctx context.Context, on bool) error {
	method := http.MethodPut
	if !on {
		method = http.MethodDelete
	}
	if err := c.do(ctx, method, "/v1/draining", nil, &struct{}{}); err != nil {
		return fmt.Errorf("switching draining: %w", err)
	}
	return nil
}

// Leaving announces to workers that NGINX is about to end: the health check on its
// ports fails, and HTTP/1 connections are closed after their next response.
func (c *Client) Leaving(ctx context.Context) error {
	if err := c.do(ctx, http.MethodPut, "/v1/leaving", nil, &struct{}{}); err != nil {
		return fmt.Errorf("announcing the end to the data plane: %w", err)
	}
	return nil
}
