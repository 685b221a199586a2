package dataplane

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// Traffic deletes workers' counts of requests that were seen, by the names of their reports, and
// returns those that there are now, by name. A report is returned until it is deleted.
func (c *Client) Traffic(ctx context.Context, seen []string) (map[string][]byte, error) {
	return c.reports(ctx, "/v1/traffic", seen)
}

// Spans is like Traffic, for spans.
func (c *Client) Spans(ctx context.Context, seen []string) (map[string][]byte, error) {
	return c.reports(ctx, "/v1/spans", seen)
}

func (c *Client) reports(ctx context.Context, path string, seen []string) (map[string][]byte, error) {
	var answer struct {
		Reports map[string][]byte `json:"reports"`
	}
	if err := c.do(ctx, http.MethodPost, path, []byte(strings.Join(seen, " ")), &answer); err != nil {
		return nil, fmt.Errorf("reading reports of workers: %w", err)
	}
	return answer.Reports, nil
}
