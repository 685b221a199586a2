package dataplane

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// Spans deletes reports of spans that were seen, by their names, and returns those that there
// are now, by name. A report is returned until it is deleted.
func (c *Client) Spans(ctx context.Context, seen []string) (map[string][]byte, error) {
	var answer struct {
		Reports map[string][]byte `json:"reports"`
	}
	if err := c.do(ctx, http.MethodPost, "/v1/spans", []byte(strings.Join(seen, " ")), &answer); err != nil {
		return nil, fmt.Errorf("reading the data plane's spans: %w", err)
	}
	return answer.Reports, nil
}
