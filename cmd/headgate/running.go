package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/nginx/rundir"

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
	return running{dir, dataplane.New(rundir.Socket(dir)), notes}
}

// directory is the run directory of the controller to query.
func (o debugOptions) directory() (string, error) {
	if o.runDir != "" {
		return o.runDir, nil
	}
	dirs, err := rundir.Running()
	if err != nil {
		return "", err
	}
	return only(dirs)
}

// errNoController: none runs.
var errNoController = errors.New("no controller of this user runs here: use its user, in its pod or on its machine, or set --run-dir")

// only is the run directory of the only controller.
func only(dirs []string) (string, error) {
	switch len(dirs) {
	case 0:
		return "", errNoController
	case 1:
		return dirs[0], nil
	}
	return "", fmt.Errorf("%d controllers run here: set --run-dir to one of %s", len(dirs), strings.Join(dirs, ", "))
}

// askTimeout is for one request to the controller, which may wait for it to be idle.
const askTimeout = 30 * time.Second

// ask queries the controller.
func (r running) ask(ctx context.Context, path string, parameters url.Values, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return askController(ctx, rundir.ControllerSocket(r.dir), path, parameters, answer)
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

// errNotListening: no controller has the socket.
var errNotListening = errors.New("no controller listens on")

// askController queries the controller on a socket.
func askController(ctx context.Context, socket, path string, parameters url.Values, answer any) error {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	target := url.URL{Scheme: "http", Host: "controller", Path: path, RawQuery: parameters.Encode()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("query the controller: %w", err)
	}
	response, err := transport.RoundTrip(request)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w %s", errNotListening, socket)
	case err != nil:
		return fmt.Errorf("query the controller: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read the controller's response: %w", err)
	}
	var refused struct {
		Error string `json:"error"`
	}
	into := answer
	if response.StatusCode != http.StatusOK {
		into = &refused
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read the controller's response: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the controller: %s", refused.Error)
	}
	return nil
}
