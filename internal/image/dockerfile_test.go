package image_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/image"
	"github.com/headgate/headgate/internal/image/debian"
)

var update = flag.Bool("update", false, "write deploy/Dockerfile")

// TestDockerfile: the Dockerfile has the labels, variables, users and programs of the images
// that make image makes, and the version of Go that the code needs.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	lock, err := os.Open("../../deploy/image/amd64.lock")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	in := image.Input{Source: image.Source}
	if in.Lock, err = debian.ReadLock(lock); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	golang := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(text)
	if golang == nil {
		t.Fatal("go.mod names no version of Go")
	}
	const name = "../../deploy/Dockerfile"
	want := image.Dockerfile(in, string(golang[1]))
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("deploy/Dockerfile differs from the images: run go test ./internal/image -update\n%s", want)
	}
	for _, instruction := range []string{"USER 101\n", "USER 65532\n", `ENTRYPOINT ["/usr/bin/dumb-init", "--"]`, `CMD ["/nginx-ingress-controller"]`} {
		if !strings.Contains(want, instruction) {
			t.Errorf("no %s", instruction)
		}
	}
}
