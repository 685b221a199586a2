package dataplane

import (
	"context"
	"fmt"
	"net/http"
)

// Connections are NGINX's own numbers: of connections and requests since it was started, and of
// connections that are open.
type Connections struct {
	Accepted, Handled, Requests       uint64
	Active, Reading, Writing, Waiting uint64
}

// Connections returns those of all workers, with the connections and requests of this API.
func (c *Client) Connections(ctx context.Context) (Connections, error) {
	page, err := c.fetch(ctx, http.MethodGet, "/v1/connections", nil)
	if err != nil {
		return Connections{}, fmt.Errorf("reading NGINX's numbers of connections: %w", err)
	}
	return parseConnections(string(page))
}

// parseConnections reads the page of stub_status.
func parseConnections(page string) (n Connections, err error) {
	_, err = fmt.Sscanf(page, "Active connections: %d \nserver accepts handled requests\n %d %d %d \nReading: %d Writing: %d Waiting: %d",
		&n.Active, &n.Accepted, &n.Handled, &n.Requests, &n.Reading, &n.Writing, &n.Waiting)
	if err != nil {
		return Connections{}, fmt.Errorf("parsing NGINX's numbers of connections: %w", err)
	}
	return n, nil
}
