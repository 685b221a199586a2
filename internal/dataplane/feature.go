package dataplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Feature asks the data plane's part of a feature, by the feature's name. Such a request may be
// sent twice.
func (c *Client) Feature(ctx context.Context, name string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("asking the data plane's feature %s: %w", name, err)
	}
	if err := c.do(ctx, http.MethodPost, "/v1/features/"+name, body, answer); err != nil {
		return fmt.Errorf("asking the data plane's feature %s: %w", name, err)
	}
	return nil
}
