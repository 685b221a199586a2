// Package adminapi serves the controller's read-only API on a unix socket: what
// the controller knows, for administrators on the machine or in the pod.
// docs/controller-api.md is its contract.
//
// A client that waits here does not delay anything else for long.
package adminapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/finding"
)

// timeout limits how long a client may take to send a request and to read the
// response.
const timeout = 30 * time.Second

// Answers are what the API shows.
type Answers struct {
	// Findings returns the current findings, sorted.
	Findings func() []finding.Finding
	// Codes returns how many of them have each code, which is asked for much more often.
	Codes   func() map[finding.Code]int
	Explain Explain
	Units   Units
	// Edges are those of a control; nil if NGINX is here.
	Edges func() []Edge
	// Overview is nil if what it would show is not kept.
	Overview *Overview
}

// Start creates the socket, replaces one that an earlier controller left, and
// serves until stop is called, which removes the socket. The permissions of its
// directory decide which users may connect.
func Start(socket string, answers Answers, log *slog.Logger) (stop func(), err error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the old socket of the controller's API: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for the controller's API: %w", err)
	}
	server := &http.Server{
		Handler:      Handler(answers),
		ReadTimeout:  timeout,
		WriteTimeout: timeout,
		ErrorLog:     slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// Serving requests does not depend on the API.
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the controller's API failed", "error", err)
		}
	}()
	return func() {
		server.Close()
		<-ended
	}, nil
}

// Handler serves the API.
func Handler(from Answers) http.Handler {
	mux := http.NewServeMux()
	calls := map[string]http.HandlerFunc{
		"/v1/findings": func(w http.ResponseWriter, r *http.Request) { showFindings(w, r, from) },
		"/v1/explain":  func(w http.ResponseWriter, r *http.Request) { showExplanation(w, r, from.Explain) },
		"/v1/edges":    func(w http.ResponseWriter, r *http.Request) { showEdges(w, r, from.Edges) },
		"/v1/units":    func(w http.ResponseWriter, r *http.Request) { showUnits(w, r, from.Units) },
	}
	addOverview(calls, from)
	for path, call := range calls {
		mux.HandleFunc("GET "+path, call)
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "method must be GET: the API is read-only")
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "unknown path: must be "+strings.Join(slices.Sorted(maps.Keys(calls)), ", "))
	})
	return mux
}

func refuse(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]string{"error": why})
}

// answer sends a value as indented JSON.
func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	// If the client is gone, nothing needs to be done.
	_ = encoder.Encode(value)
}
