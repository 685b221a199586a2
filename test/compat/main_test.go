// Package compat_test compares Headgate with ingress-nginx: cases/ has recorded
// answers of ingress-nginx, and FORMAT.md describes their format. The tests need
// root, for a real Kubernetes, and the NGINX of Debian 13.
package compat_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// shared runs everything: some cases need kube-proxy.
var shared clustertest.Shared

// socketVariable turns the test program into the commands that the runner calls:
// it sends its arguments to the test, which has the controller, at this socket.
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
