package dbg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/headgate/headgate/internal/command/instance"
	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/unit"
)

// A running is a running controller, with its NGINX.
type running struct {
	dir       string
	dataPlane *dataplane.Client
	// notes are beside the output.
	notes io.Writer
}

func newRunning(dir string, notes io.Writer) running {
	return running{dir, instance.DataPlane(dir), notes}
}

// askTimeout is for one request to the controller, which may wait for it to be idle.
const askTimeout = 30 * time.Second

// ask queries the controller.
func (r running) ask(ctx context.Context, path string, parameters url.Values, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return instance.Ask(ctx, r.dir, path, parameters, answer)
}

// names lists the units of a kind that NGINX has, as the controller knows.
func (r running) names(ctx context.Context, kind unit.Kind) ([]string, error) {
	var answer struct {
		Names []string `json:"names"`
	}
	err := r.ask(ctx, "/v1/units", url.Values{"kind": {string(kind)}}, &answer)
	return answer.Names, err
}

// list lists the names of the units of a kind that NGINX has, each as shown says.
func (r running) list(ctx context.Context, kind unit.Kind, shown func(string) string, out *bytes.Buffer) error {
	names, err := r.names(ctx, kind)
	for _, name := range names {
		fmt.Fprintln(out, shown(name))
	}
	return err
}

// each reads all units of a kind from NGINX. It leaves out what was deleted meanwhile.
func (r running) each(ctx context.Context, kind unit.Kind, visit func(name string, u dataplane.Unit) error) error {
	names, err := r.names(ctx, kind)
	if err != nil {
		return err
	}
	return r.dataPlane.Units(ctx, kind, names, visit)
}

// unit reads a unit from NGINX. missing is said if there is none.
func (r running) unit(ctx context.Context, key unit.Key, missing string) (dataplane.Unit, error) {
	u, err := r.dataPlane.Unit(ctx, key)
	if errors.Is(err, dataplane.ErrNotFound) {
		return u, errors.New(missing)
	}
	return u, err
}
