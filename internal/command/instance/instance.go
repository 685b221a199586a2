// Package instance finds a controller that runs in this pod or on this machine, and queries it.
//
// It knows run directories and the sockets in them. What the answers mean is for the commands
// that ask.
package instance

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

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/nginx/rundir"
)

// Directory is the run directory of the controller to query: the given one, or that of the
// only controller of this user.
func Directory(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	dirs, err := rundir.Running()
	if err != nil {
		return "", err
	}
	return only(dirs)
}

// Name is the name of a controller with these ports, in the one of its run directory.
func Name(httpPort, httpsPort uint16) string { return fmt.Sprintf("%d-%d", httpPort, httpsPort) }

// Default is the run directory of a controller with these ports, unless it has another one.
func Default(httpPort, httpsPort uint16) string { return rundir.Default(Name(httpPort, httpsPort)) }

// ErrNoController: none runs.
var ErrNoController = errors.New("no controller of this user runs here: use its user, in its pod or on its machine, or set --run-dir")

// only is the run directory of the only controller.
func only(dirs []string) (string, error) {
	switch len(dirs) {
	case 0:
		return "", ErrNoController
	case 1:
		return dirs[0], nil
	}
	return "", fmt.Errorf("%d controllers run here: set --run-dir to one of %s", len(dirs), strings.Join(dirs, ", "))
}

// DataPlane is a client of the NGINX of a controller.
func DataPlane(dir string) *dataplane.Client { return dataplane.New(rundir.Socket(dir)) }

// errNotListening: no controller has the socket.
var errNotListening = errors.New("no controller listens on")

// Ask queries the controller with a run directory.
func Ask(ctx context.Context, dir, path string, parameters url.Values, answer any) error {
	socket := rundir.ControllerSocket(dir)
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
