// Package interop_test holds Headgate to what implementations of gRPC and WebSocket that are
// not its own expect of each other.
package interop_test

import (
	"os"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestMain is also the gRPC client of the cases: a case that fails ends its process.
func TestMain(m *testing.M) {
	if name := os.Getenv(caseVariable); name != "" {
		runCase(name, os.Getenv(addressVariable), os.Getenv(hostVariable))
		return
	}
	os.Exit(m.Run())
}

// served is a Service with a backend, and an Ingress for NAME.test.
func served(name, service, address string, annotations ...string) string {
	return service + headgatetest.Endpoints(name, address) +
		headgatetest.Ingress(name, name+".test", "/", name, append([]string{"ssl-redirect: false"}, annotations...)...)
}
