package compat_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// The orders of the runner: the first argument of its commands.
const (
	restartOrder = "restart"
	syncedOrder  = "synced"
)

// orderProgram sends an order to the test at a socket, with an argument in each line, and waits until
// it is done. Each case gives some, and curl starts ten times faster than the test program.
const orderProgram = `#!/bin/sh
order=$1
shift
printf '%%s\n' "$@" | curl --silent --show-error --fail --data-binary @- --unix-socket %s "http://test/$order"
`

// takeOrders executes the runner's commands until the test ends, and returns
// their beginning.
func (c *controller) takeOrders(t *testing.T) string {
	t.Helper()
	socket, program := c.file("orders.sock"), c.file("order")
	if err := os.WriteFile(program, fmt.Appendf(nil, orderProgram, socket), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		arguments := slices.DeleteFunc(strings.Split(string(body), "\n"), func(line string) bool { return line == "" })
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
	return program + " "
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
