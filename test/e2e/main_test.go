// Package e2e_test runs Headgate as a user does, in a real Kubernetes, and tests
// that it serves the API server's objects through changes, restarts and outages.
// README.md lists the tests.
package e2e_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

var (
	shared clustertest.Shared
	// headgateBuild is that of this commit.
	headgateBuild = build{source: "../..", tag: "e2e"}
)

func TestMain(m *testing.M) {
	code := shared.Run(m)
	if err := headgateBuild.remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}
