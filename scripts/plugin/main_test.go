package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func filled(t *testing.T) *manifest {
	t.Helper()
	text, err := os.ReadFile("../../" + template)
	if err != nil {
		t.Fatal(err)
	}
	m, err := fill(text, "v1.2.3", "https://example.com/v1.2.3/")
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Spec.Platforms {
		m.Spec.Platforms[i].SHA256 = strings.Repeat("0a", 32)
	}
	return m
}

// The template becomes a manifest that krew takes, for all platforms.
func TestTemplate(t *testing.T) {
	m := filled(t)
	if err := m.check(); err != nil {
		t.Error(err)
	}
	var platforms []string
	for _, p := range m.Spec.Platforms {
		platforms = append(platforms, p.String())
		want := "https://example.com/v1.2.3/kubectl-headgate_" + strings.Replace(p.String(), "/", "_", 1) + ".tar.gz"
		if p.URI != want {
			t.Errorf("the archive of %s is %s, want %s", p, p.URI, want)
		}
	}
	slices.Sort(platforms)
	want := []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"}
	if diff := cmp.Diff(want, platforms); diff != "" {
		t.Error(diff)
	}
}

func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*manifest){
		"invalid apiVersion":               func(m *manifest) { m.APIVersion = "v1" },
		"invalid kind":                     func(m *manifest) { m.Kind = "plugin" },
		"invalid name":                     func(m *manifest) { m.Metadata.Name = "Headgate" },
		"invalid version":                  func(m *manifest) { m.Spec.Version = "1.2.3" },
		"must be a line":                   func(m *manifest) { m.Spec.ShortDescription += strings.Repeat("x", 50) },
		"must not end":                     func(m *manifest) { m.Spec.ShortDescription = "Look." },
		"the description is missing":       func(m *manifest) { m.Spec.Description = "" },
		"there are no platforms":           func(m *manifest) { m.Spec.Platforms = nil },
		"there are two archives":           func(m *manifest) { m.Spec.Platforms[1] = m.Spec.Platforms[0] },
		"invalid uri":                      func(m *manifest) { m.Spec.Platforms[0].URI = "BASE/x.tar.gz" },
		"krew does not read":               func(m *manifest) { m.Spec.Platforms[0].URI = "https://example.com/x.tgz" },
		"linux/amd64: invalid sha256":      func(m *manifest) { m.Spec.Platforms[0].SHA256 = "SHA256" },
		"linux/amd64: invalid bin":         func(m *manifest) { m.Spec.Platforms[0].Bin = "../x" },
		"linux/amd64: invalid suffix of b": func(m *manifest) { m.Spec.Platforms[0].Bin = "x.exe" },
	} {
		m := filled(t)
		change(m)
		if err := m.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	for _, version := range []string{"", "1.2.3", "v1.2", "v01.2.3", "v1.2.3 "} {
		if _, err := fill([]byte("kind: Plugin"), version, "https://example.com"); err == nil {
			t.Errorf("version %q is accepted", version)
		}
	}
	if _, err := fill([]byte("kinds: Plugin"), "v1.2.3", "https://example.com"); err == nil {
		t.Error("an unknown field is accepted")
	}
}

// An archive has the same bytes each time, and the mode that lets the program run.
func TestArchive(t *testing.T) {
	entries := []entry{{"program", 0o755, []byte("code")}, {"LICENSE", 0o644, []byte("terms")}}
	var first, second bytes.Buffer
	if err := errors.Join(writeArchive(&first, entries), writeArchive(&second, entries)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two archives differ")
	}
	compressed, err := gzip.NewReader(&first)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(compressed)
	for _, e := range entries {
		header, err := archive.Next()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil || header.Name != e.name || header.Mode != e.mode || string(data) != string(e.data) || header.ModTime.Unix() != 0 {
			t.Errorf("the archive has %+v with %q: %v", header, data, err)
		}
	}
	if _, err := archive.Next(); err != io.EOF {
		t.Errorf("the archive has more: %v", err)
	}
}
