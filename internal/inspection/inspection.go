// Package inspection serves the read side of the controller's API on a unix
// socket: what the controller knows, for who is on the machine or in the pod.
// docs/controller-api.md is its contract.
//
// It only reads: whoever waits here keeps nobody else waiting for long.
package inspection

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/finding"
)

// Server answers on the socket.
type Server struct {
	listener net.Listener
	server   *http.Server
}

// patience bounds how long a client may take to ask, and to read the answer.
const patience = 30 * time.Second

// Listen makes the socket, in the place of what an earlier controller left.
// Its directory says who may connect. findings returns, sorted, what there is
// now, and explain what becomes of a request.
func Listen(socket string, findings func() []finding.Finding, explain Explain, log *slog.Logger) (*Server, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the old socket of the controller's API: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for the controller's API: %w", err)
	}
	return &Server{listener: listener, server: &http.Server{
		Handler:      handler(findings, explain),
		ReadTimeout:  patience,
		WriteTimeout: patience,
		ErrorLog:     slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}, nil
}

// Serve answers until Close.
func (s *Server) Serve() error {
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the controller's API: %w", err)
	}
	return nil
}

// Close ends the server at once and removes the socket.
func (s *Server) Close() error {
	// The server closes the listener only once it serves.
	return errors.Join(s.server.Close(), ignoreClosed(s.listener.Close()))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func handler(findings func() []finding.Finding, explain Explain) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/findings", func(w http.ResponseWriter, r *http.Request) { showFindings(w, r, findings) })
	mux.HandleFunc("GET /v1/explain", func(w http.ResponseWriter, r *http.Request) { showExplanation(w, r, explain) })
	for _, path := range []string{"/v1/findings", "/v1/explain"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "only GET: nothing can be changed here")
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "no such path: /v1/findings and /v1/explain are there")
	})
	return mux
}

// showFindings answers with those that each parameter fits.
func showFindings(w http.ResponseWriter, r *http.Request, findings func() []finding.Finding) {
	wanted := r.URL.Query()
	for name := range wanted {
		if name != "object" && name != "code" {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("no such parameter %q: object and code are there", name))
			return
		}
	}
	fits := func(name, value string) bool { return !wanted.Has(name) || slices.Contains(wanted[name], value) }
	shown := []finding.Finding{}
	for _, f := range findings() {
		if fits("object", f.Object) && fits("code", string(f.Code)) {
			shown = append(shown, f)
		}
	}
	answer(w, http.StatusOK, map[string][]finding.Finding{"findings": shown})
}

func refuse(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]string{"error": why})
}

// answer sends a value, in a form that people can read too.
func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	// Who went away needs no answer.
	_ = encoder.Encode(value)
}
