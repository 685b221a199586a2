// Package compat_test holds Headgate to the behaviour of ingress-nginx: cases/
// has what that answered, FORMAT.md says how to read it. The tests need root,
// for a real Kubernetes, and NGINX of Debian 13, which the recordings are of.
package compat_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// shared runs everything: some cases need kube-proxy.
var shared clustertest.Shared

// socketVariable makes the test program the commands that the runner calls: it
// hands its arguments to the test, which has the controller, at this socket.
const socketVariable = "HEADGATE_COMPAT_SOCKET"

func TestMain(m *testing.M) {
	if socket := os.Getenv(socketVariable); socket != "" {
		if err := handOver(socket, os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(shared.Run(m))
}
