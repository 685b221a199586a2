// Package e2e_test runs Headgate as a user does, in a real Kubernetes, and tests
// that it serves the API server's objects through changes, restarts and outages.
// README.md lists the tests.
package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

var (
	shared     clustertest.Shared
	controller program
)

func TestMain(m *testing.M) {
	code := shared.Run(m)
	if err := controller.remove(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// A program is the controller's, with the plugin of kubectl beside it. The first test
// that needs it builds it.
type program struct {
	once sync.Once
	dir  string
	err  error
}

func (p *program) path() (string, error) {
	p.once.Do(func() {
		if p.dir, p.err = os.MkdirTemp("", "headgate-e2e-"); p.err != nil {
			return
		}
		output, err := exec.Command("go", "build", "-o", p.dir, "../../cmd/headgate", "../../cmd/kubectl-headgate").CombinedOutput()
		if err != nil {
			p.err = errors.New("building headgate: " + string(output))
		}
	})
	return filepath.Join(p.dir, "headgate"), p.err
}

func (p *program) remove() error {
	if p.dir == "" {
		return nil
	}
	return os.RemoveAll(p.dir)
}
