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
	// Memory is that after the last applied frame.
	Memory Memory
}

// Push writes changes in their order into a numbered set of dictionaries, for a
// generation, in as many frames as necessary. Changes that were applied before an
// error stay, and Result counts them. A change of which some parts are missing has
// no effect, and is sent again from its start.
//
// If a change does not fit into a frame, nothing is sent.
func (c *Client) Push(ctx context.Context, dictionary, generation int, changes []unit.Change) (Result, error) {
	for _, c := range changes {
		if err := check(c); err != nil {
			return Result{}, fmt.Errorf("packing units: %w", err)
		}
	}
	var result Result
	for f := range frames(dictionary, generation, changes) {
		var answer struct {
			Memory Memory `json:"memory"`
		}
		if err := c.apply(ctx, f.body, &answer); err != nil {
			return result, fmt.Errorf("pushing units, %[2]d of %[1]d applied: %[3]w", len(changes), result.Applied, err)
		}
		result = Result{Applied: f.entries, Memory: answer.Memory}
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
	return c.set(ctx, http.MethodPut, "/v1/loaded", "marking the data plane as loaded")
}

// Draining makes workers close HTTP/1 connections after their next response, or
// not.
func (c *Client) Draining(ctx context.Context, on bool) error {
	method := http.MethodPut
	if !on {
		method = http.MethodDelete
	}
	return c.set(ctx, method, "/v1/draining", "starting or ending the drain")
}

// Leaving announces to workers that NGINX is about to end: the health check on its
// ports fails, and HTTP/1 connections are closed after their next response.
func (c *Client) Leaving(ctx context.Context) error {
	return c.set(ctx, http.MethodPut, "/v1/leaving", "announcing the end to the data plane")
}

func (c *Client) set(ctx context.Context, method, path, doing string) error {
	if err := c.do(ctx, method, path, nil, &struct{}{}); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
