package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// A build is Headgate from a checkout of its repository, of this commit or another one.
type build struct {
	// source is the root of the checkout.
	source string
	// tag is that of the images, and the version of the programs.
	tag string

	programsOnce, imagesOnce sync.Once
	dir                      string
	programsErr, imagesErr   error
}

// images are the names of the container images of a build.
type images struct{ controller, chroot, certgen string }

func (b *build) images() images {
	const repository = "headgate/"
	return images{
		controller: repository + "headgate:" + b.tag, chroot: repository + "headgate-chroot:" + b.tag,
		certgen: repository + "headgate-certgen:" + b.tag,
	}
}

// program returns the path of the controller's program, with the plugin of kubectl beside it.
// The first test that needs it builds it.
func (b *build) program() (string, error) {
	b.programsOnce.Do(func() {
		if b.dir, b.programsErr = os.MkdirTemp("", "headgate-e2e-"); b.programsErr != nil {
			return
		}
		// As `make image` does.
		cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X main.version="+b.tag,
			"-o", b.dir, "./cmd/headgate", "./cmd/kubectl-headgate")
		cmd.Dir, cmd.Env = b.source, append(os.Environ(), "CGO_ENABLED=0")
		if output, err := cmd.CombinedOutput(); err != nil {
			b.programsErr = errors.New("building headgate: " + string(output))
		}
	})
	return filepath.Join(b.dir, "headgate"), b.programsErr
}

// load gives the node the images that `make image` builds, for this machine's architecture.
// Pods use them with the pull policy Never. The first test that needs them builds them:
// packages that were not fetched before come from Debian's mirror.
func (b *build) load(t testing.TB, cluster *clustertest.Cluster) images {
	t.Helper()
	program, err := b.program()
	if err != nil {
		t.Fatal(err)
	}
	b.imagesOnce.Do(func() {
		archive := filepath.Join(b.dir, "images.tar")
		cmd := exec.Command("go", "run", "-buildvcs=false", "./scripts/image", "-headgate", runtime.GOARCH+"="+program, "-version", b.tag, "-o", archive)
		cmd.Dir = b.source
		if output, err := cmd.CombinedOutput(); err != nil {
			b.imagesErr = fmt.Errorf("building the images: %w: %s", err, output)
			return
		}
		// Not the test's context: the images are for the next tests too.
		b.imagesErr = cluster.ImportArchive(context.Background(), archive)
		_ = os.Remove(archive)
	})
	if b.imagesErr != nil {
		t.Fatal(b.imagesErr)
	}
	return b.images()
}

func (b *build) remove() error {
	if b.dir == "" {
		return nil
	}
	return os.RemoveAll(b.dir)
}
