package e2e_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

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
	index                    []byte // index.json of the images' archive
	programsErr, imagesErr   error
}

// previousBuild is that of the commit before this one's, or of the commit that HEADGATE_PREVIOUS
// names.
func previousBuild(t *testing.T) *build {
	t.Helper()
	named := os.Getenv("HEADGATE_PREVIOUS")
	commit := cmp.Or(named, "HEAD^")
	if err := exec.Command("git", "rev-parse", "--verify", "--quiet", commit+"^{commit}").Run(); err != nil {
		if named != "" {
			t.Fatalf("HEADGATE_PREVIOUS names %s, which this repository does not have", named)
		}
		t.Log("this clone has no commit before HEAD: the images before are those of HEAD, with another version")
		commit = "HEAD"
	}
	b := &build{source: t.TempDir(), tag: "previous"}
	t.Cleanup(func() {
		if err := b.remove(); err != nil {
			t.Error(err)
		}
	})
	archive := filepath.Join(t.TempDir(), "source.tar")
	for _, args := range [][]string{
		{"git", "-C", "../..", "archive", "-o", archive, commit},
		{"tar", "-x", "-f", archive, "-C", b.source},
	} {
		if output, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", args, err, output)
		}
	}
	return b
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
		if b.imagesErr = cluster.ImportArchive(context.Background(), archive); b.imagesErr == nil {
			b.index, b.imagesErr = fileOf(archive, "index.json")
		}
		_ = os.Remove(archive)
	})
	if b.imagesErr != nil {
		t.Fatal(b.imagesErr)
	}
	return b.images()
}

// loadAs gives the node the images under other names too, each by its own name.
func (b *build) loadAs(t testing.TB, cluster *clustertest.Cluster, names map[string][]string) {
	t.Helper()
	b.load(t, cluster)
	var index v1.IndexManifest
	if err := json.Unmarshal(b.index, &index); err != nil {
		t.Fatal(err)
	}
	var renamed []v1.Descriptor
	for _, image := range index.Manifests {
		for _, name := range names[strings.TrimPrefix(image.Annotations[nameAnnotation], "docker.io/")] {
			image.Annotations = map[string]string{nameAnnotation: name}
			renamed = append(renamed, image)
		}
	}
	index.Manifests = renamed
	list, err := json.Marshal(index)
	if err != nil {
		t.Fatal(err)
	}
	// An archive of the names alone: the node has the rest.
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, file := range []struct{ name, text string }{{"oci-layout", `{"imageLayoutVersion":"1.0.0"}`}, {"index.json", string(list)}} {
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: file.name, Mode: 0o644, Size: int64(len(file.text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(writer, file.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "names.tar")
	if err := os.WriteFile(path, archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cluster.ImportArchive(t.Context(), path); err != nil {
		t.Fatal(err)
	}
}

const nameAnnotation = "io.containerd.image.name"

// fileOf is the content of a file in a tar archive.
func fileOf(archive, name string) ([]byte, error) {
	file, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if err != nil {
			return nil, fmt.Errorf("%s has no %s: %w", archive, name, err)
		}
		if header.Name == name {
			return io.ReadAll(reader)
		}
	}
}

func (b *build) remove() error {
	if b.dir == "" {
		return nil
	}
	return os.RemoveAll(b.dir)
}
