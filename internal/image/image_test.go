package image_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"pault.ag/go/debian/deb"

	"github.com/headgate/headgate/internal/image"
	"github.com/headgate/headgate/internal/image/debian"
	"github.com/headgate/headgate/internal/image/rootfs"
)

func input() image.Input {
	return image.Input{
		Lock:    debian.Lock{Architecture: "amd64", At: time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)},
		Version: "v1", Revision: "abc", Source: "https://example.com/headgate",
	}
}

// makeAll makes the images of a small root.
func makeAll(t *testing.T, in image.Input) []image.Named {
	t.Helper()
	root := image.Root{Base: rootfs.New(), Program: rootfs.New()}
	for tree, name := range map[*rootfs.Tree]string{root.Base: "etc/passwd", root.Program: "usr/bin/headgate"} {
		if err := tree.Add(name, rootfs.File{Kind: tar.TypeReg, Mode: 0o644, Content: []byte(name)}); err != nil {
			t.Fatal(err)
		}
	}
	layers, err := root.Layers(in.Lock.At)
	if err != nil {
		t.Fatal(err)
	}
	var named []image.Named
	for _, kind := range image.Kinds() {
		made, err := image.Make(kind, in, layers)
		if err != nil {
			t.Fatal(err)
		}
		named = append(named, image.Named{Name: kind.Name + ":v1", Image: made})
	}
	return named
}

// TestArchive: the archive is the same each time, has each layer once, and names the images.
func TestArchive(t *testing.T) {
	t.Parallel()
	in := input()
	var one, two bytes.Buffer
	for _, to := range []*bytes.Buffer{&one, &two} {
		if err := image.WriteArchive(to, makeAll(t, in)...); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("two archives of the same input differ")
	}
	files := map[string][]byte{}
	for r := tar.NewReader(&one); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(files["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	users := map[string]string{}
	for _, m := range index.Manifests {
		var manifest v1.Manifest
		var config v1.ConfigFile
		for from, to := range map[string]any{"blobs/sha256/" + m.Digest.Hex: &manifest} {
			if err := json.Unmarshal(files[from], to); err != nil {
				t.Fatal(err)
			}
		}
		if err := json.Unmarshal(files["blobs/sha256/"+manifest.Config.Digest.Hex], &config); err != nil {
			t.Fatal(err)
		}
		users[m.Annotations["io.containerd.image.name"]] = config.Config.User + " " + strings.Join(config.Config.Entrypoint, " ")
	}
	if users["headgate:v1"] != "101 /usr/bin/dumb-init --" || users["headgate-chroot:v1"] != users["headgate:v1"] || users["headgate-certgen:v1"] != "65532 /kube-webhook-certgen" {
		t.Errorf("%v", users)
	}
	// oci-layout, index.json, two layers, and of two images, one of which has two names, a configuration and a manifest
	if len(files) != 8 {
		t.Errorf("%d files", len(files))
	}
}

// TestSBOM: it names the packages of the image and the modules of the program, each once.
func TestSBOM(t *testing.T) {
	t.Parallel()
	text, err := image.SBOM(input(), []deb.Control{{Package: "libstdc++6"}}, &debug.BuildInfo{
		GoVersion: "go1.26", Deps: []*debug.Module{{Path: "example.com/a_b", Version: "v1.0.0"}, {Path: "example.com/a/c", Version: "v2.0.0"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		SPDXVersion string `json:"spdxVersion"`
		Packages    []struct {
			Name string `json:"name"`
			ID   string `json:"SPDXID"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	found, ids := map[string]bool{}, map[string]bool{}
	for _, p := range list.Packages {
		if ids[p.ID] {
			t.Errorf("two packages have the identifier %s", p.ID)
		}
		found[p.Name], ids[p.ID] = true, true
	}
	if list.SPDXVersion != "SPDX-2.3" || len(found) != 5 || !found["headgate"] || !found["std"] || !found["libstdc++6"] || !found["example.com/a/c"] {
		t.Errorf("%s %v", list.SPDXVersion, found)
	}
}
