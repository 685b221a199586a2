package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"
)

// TestLook: a request that ends while workers are asked leaves the answer to others.
func TestLook(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"pid": 7, "accepting": [{"pid": 7, "generation": 1}]}`)
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer func() {
		server.Close()
		<-ended
	}()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w := &watcher{socket: socket}
	for range 2 {
		if found, err := w.look(gone); err != nil || len(found) != 1 || found[0].State.PID != 7 {
			t.Errorf("%+v %v", found, err)
		}
	}
}
