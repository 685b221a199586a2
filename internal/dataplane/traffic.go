package dataplane

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// Traffic deletes reports that were seen, by their names, and returns those that there are
// now, by name. A report is returned until it is deleted.
func (c *Client) Traffic(ctx context.Context, seen []string) (map[string][]byte, error) {
	var answer struct {
		Reports map[string][]byte `json:"reports"`
	}
	if err := c.do(ctx, http.MethodPost, "/v1/traffic", []byte(strings.Join(seen, " ")), &answer); err != nil {
		return nil, fmt.Errorf("reading the data plane's counts of requests: %w", err)
	}
	return answer.Reports, nil
}
