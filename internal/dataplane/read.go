package dataplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/headgate/headgate/internal/unit"
)

// A State is what one worker reports about itself and about the shared memory.
type State struct {
	// Instance changes when NGINX is restarted with empty memory.
	Instance string `json:"instance"`
	// Dictionary, Generation and PID are those of the worker that responded.
	Dictionary int `json:"dictionary"`
	Generation int `json:"generation"`
	PID        int `json:"pid"`
	// Revision counts the applied frames.
	Revision int64 `json:"revision"`
	Loaded   bool  `json:"loaded"`
	Draining bool  `json:"draining"`
	// Leaving: NGINX is about to end.
	Leaving bool `json:"leaving"`
	// Accepting are the workers that accept connections. A killed worker stays in
	// the list.
	Accepting []Worker `json:"accepting"`
	Memory    Memory   `json:"memory"`
	// Broken are the payloads that the worker could not decode.
	Broken []Broken `json:"broken"`
	Cache  Cache    `json:"cache"`
	// Kept is the number of requests of that worker that jumped to a profile and
	// are not done.
	Kept int `json:"kept"`
	// Refusals are the numbers of requests and TLS handshakes that were refused because a
	// namespace's time was up, by reason and namespace.
	Refusals map[string]map[string]int64 `json:"refusals"`
	// GivenUp are the regular expressions that workers gave up on, of units that have not
	// changed since.
	GivenUp []GivenUp `json:"given_up"`
	// Ejected are the endpoints that are ejected in that worker, at most 100.
	Ejected []Ejected `json:"ejected"`
	// Ejections are the numbers of ejections in all workers, by reason and namespace.
	Ejections map[string]map[string]int64 `json:"ejections"`
	// Uncounted are the numbers of requests that a limit let pass without counting them,
	// by reason and namespace.
	Uncounted map[string]map[string]int64 `json:"uncounted"`
	// Times are the seconds that workers took, by reason and namespace, and Retries the
	// numbers of retries by namespace.
	Times   map[string]map[string]float64 `json:"times"`
	Retries map[string]int64              `json:"retries"`
}

// Ejected is an endpoint that a worker knows to fail.
type Ejected struct {
	// Backend is its key, and Endpoint an address with a port.
	Backend  string `json:"backend"`
	Endpoint string `json:"endpoint"`
	// Reason is connect or failures.
	Reason string `json:"reason"`
	// Since and Until are Unix times. Until then it is not probed again, or is ejected.
	Since int64 `json:"since"`
	Until int64 `json:"until"`
	// Avoided: requests go to other endpoints. Otherwise too many of the backend are failing.
	Avoided bool `json:"avoided"`
}

// A Worker is a process of NGINX.
type Worker struct {
	Generation int `json:"generation"`
	PID        int `json:"pid"`
}

// Memory is the shared memory of the set of dictionaries in use.
type Memory struct {
	Units        Zone `json:"units"`
	Versions     Zone `json:"versions"`
	Certificates Zone `json:"certificates"`
}

// A Zone is one dictionary, in bytes. Free counts whole free pages only.
type Zone struct {
	Capacity int64 `json:"capacity"`
	Free     int64 `json:"free"`
}

// A Broken is a unit whose payload a worker could not decode.
type Broken struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Error   string `json:"error"`
}

// A GivenUp is a regular expression that failed for many requests.
type GivenUp struct {
	// Unit is the key of the unit that it is in, with the letter of its kind.
	Unit      string `json:"unit"`
	Host      string `json:"host"`
	Namespace string `json:"namespace"`
	Ingress   string `json:"ingress"`
	// Pattern is as it is in the unit, but its first 200 bytes at most.
	Pattern string `json:"pattern"`
	// Since is when a worker gave it up, in seconds since 1970.
	Since int64 `json:"since"`
}

// A Cache is the set of units that a worker has decoded and holds. Bytes counts packed
// bytes, and what each unit takes beside them. Decoded is how often it has decoded one.
type Cache struct {
	Bytes   int64 `json:"bytes"`
	Units   int64 `json:"units"`
	Decoded int64 `json:"decoded"`
}

// A Unit is a unit in the shared memory.
type Unit struct {
	Version string          `json:"version"`
	Needs   int             `json:"needs"`
	Worker  Holder          `json:"worker"`
	Payload json.RawMessage `json:"unit"`
}

// A Holder is the worker that reported a unit.
type Holder struct {
	PID        int `json:"pid"`
	Generation int `json:"generation"`
	// Holds is the version that the worker has decoded, or empty.
	Holds string `json:"holds,omitempty"`
	// Error is why it can't decode the newest version that it tried.
	Error string `json:"error,omitempty"`
}

// State returns the state of any worker.
func (c *Client) State(ctx context.Context) (State, error) {
	var state State
	if err := c.do(ctx, http.MethodGet, "/v1/state", nil, &state); err != nil {
		return State{}, fmt.Errorf("reading the data plane's state: %w", err)
	}
	return state, nil
}

// Unit reads a unit, a certificate without its key; ErrNotFound if there is none.
func (c *Client) Unit(ctx context.Context, name unit.Key) (Unit, error) {
	path := collection(name.Kind) + "/" + name.Name
	if name.Kind == unit.Patterns || name.Kind == unit.Globals {
		path = "/v1/" + string(name.Kind)
	}
	var u Unit
	if err := c.do(ctx, http.MethodGet, path, nil, &u); err != nil {
		return Unit{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return u, nil
}

// Units reads units of a kind, certificates without their keys, some at a time, so that
// requests hardly wait for it. It visits them in the order of the names, without those that
// there are none of.
func (c *Client) Units(ctx context.Context, kind unit.Kind, names []string, visit func(name string, u Unit) error) error {
	const atOnce = 50
	path := collection(kind)
	for len(names) > 0 {
		var some struct {
			// Read is how many names were looked at.
			Read  int             `json:"read"`
			Units map[string]Unit `json:"units"`
		}
		asked := names[:min(atOnce, len(names))]
		if err := c.do(ctx, http.MethodPost, path, []byte(strings.Join(asked, "\n")), &some); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if some.Read < 1 || some.Read > len(asked) {
			return fmt.Errorf("reading %s: %d of %d names were read", path, some.Read, len(asked))
		}
		for _, name := range asked[:some.Read] {
			u, found := some.Units[name]
			if !found {
				continue
			}
			if err := visit(name, u); err != nil {
				return err
			}
		}
		names = names[some.Read:]
	}
	return nil
}

// collection is the path of the units of a kind.
func collection(kind unit.Kind) string {
	if kind == unit.OCSPResponse {
		return "/v1/ocsp"
	}
	return fmt.Sprintf("/v1/%ss", kind)
}
