package compat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
)

// The orders of the runner: the first argument of its commands.
const (
	restartOrder = "restart"
	syncedOrder  = "synced"
)

// takeOrders executes the runner's commands until the test ends, and returns
// their beginning.
func (c *controller) takeOrders(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	socket := c.file("orders.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var arguments []string
		err := json.NewDecoder(r.Body).Decode(&arguments)
		if err == nil {
			err = c.execute(strings.TrimPrefix(r.URL.Path, "/"), arguments)
		}
		if err != nil {
			// The runner only says that its command failed.
			fmt.Fprintf(os.Stderr, "%s %q: %v\n", r.URL.Path, arguments, err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	return socketVariable + "=" + socket + " " + self + " "
}

func (c *controller) execute(order string, arguments []string) error {
	switch order {
	case restartOrder:
		return c.restart(arguments)
	case syncedOrder:
		return c.awaitSynced()
	}
	return fmt.Errorf("unknown order %q", order)
}

// handOver sends an order to the test at the socket, and waits until it is done.
func handOver(socket, order string, arguments []string) error {
	body, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	response, err := client.Post("http://test/"+order, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	text, err := io.ReadAll(response.Body)
	return errors.Join(errors.New(strings.TrimSpace(string(text))), err)
}
