// Command plugin builds the plugin of kubectl for all platforms, and the manifest by
// which krew installs it. The same sources, Go and version make the same bytes.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
)

const (
	template = "deploy/krew/headgate.yaml"
	program  = "./cmd/kubectl-headgate"
	license  = "LICENSE"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	version := flag.String("version", "", "version of the release, such as v1.2.3")
	base := flag.String("base", "", "URL of the folder from which the archives can be loaded (default: that of the release on GitHub)")
	out := flag.String("out", "bin/plugin", "folder to write to")
	flag.Parse()
	if err := run(ctx, *version, *base, *out); err != nil {
		fmt.Fprintln(os.Stderr, "plugin:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, version, base, out string) error {
	text, err := os.ReadFile(template)
	if err != nil {
		return err
	}
	base = cmp.Or(base, "https://github.com/headgate/headgate/releases/download/"+version)
	m, err := fill(text, version, base)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for i := range m.Spec.Platforms {
		p := &m.Spec.Platforms[i]
		archive, err := build(ctx, *p, version)
		if err != nil {
			return fmt.Errorf("build for %s: %w", p, err)
		}
		if err := os.WriteFile(filepath.Join(out, path.Base(p.URI)), archive, 0o644); err != nil {
			return err
		}
		sum := sha256.Sum256(archive)
		p.SHA256 = hex.EncodeToString(sum[:])
		fmt.Println(p.SHA256, path.Base(p.URI))
	}
	if err := m.check(); err != nil {
		return fmt.Errorf("%s: %w", template, err)
	}
	return m.write(filepath.Join(out, m.Metadata.Name+".yaml"))
}

// build returns the archive for a platform.
func build(ctx context.Context, p platform, version string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "headgate-plugin-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, p.Bin)
	// Without -buildvcs, two trees with the same sources have the same bytes.
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.version="+version, "-o", file, program)
	command.Env = append(os.Environ(), "GOOS="+p.Selector.MatchLabels.OS, "GOARCH="+p.Selector.MatchLabels.Arch, "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, output)
	}
	binary, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	terms, err := os.ReadFile(license)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = writeArchive(&b, []entry{{p.Bin, 0o755, binary}, {license, 0o644, terms}})
	return b.Bytes(), err
}
