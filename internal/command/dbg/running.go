package dbg

import (
	"context"
	"errors"
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

// names lists the units of a kind, as the controller knows them.
func (r running) names(ctx context.Context, kind unit.Kind) ([]string, error) {
	var answer struct {
		Names []string `json:"names"`
	}
	err := r.ask(ctx, "/v1/units", url.Values{"kind": {string(kind)}}, &answer)
	return answer.Names, err
}

// each reads all units of a kind from NGINX, one after the other, so that no request waits
// for it. It leaves out what was deleted meanwhile.
func (r running) each(ctx context.Context, kind unit.Kind, visit func(name string, u dataplane.Unit) error) error {
	names, err := r.names(ctx, kind)
	if err != nil {
		return err
	}
	for _, name := range names {
		u, err := r.dataPlane.Unit(ctx, kind.Key(name))
		if errors.Is(err, dataplane.ErrNotFound) {
			continue
		}
		if err == nil {
			err = visit(name, u)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unit reads a unit from NGINX. missing is said if there is none.
func (r running) unit(ctx context.Context, key unit.Key, missing string) (dataplane.Unit, error) {
	u, err := r.dataPlane.Unit(ctx, key)
	if errors.Is(err, dataplane.ErrNotFound) {
		return u, errors.New(missing)
	}
	return u, err
}
