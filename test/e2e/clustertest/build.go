package clustertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// BackendImage is the image of the test backend, in every cluster with pods. It
// answers on port 8080 as package echo does, and to /healthz.
const BackendImage = "cluster.invalid/backend:1"

const buildScript = "test/cluster/build"

// repository returns the root of the repository, which the working directory is
// in.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, buildScript)); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the working directory is not in Headgate's repository")
		}
	}
}

// buildProgram returns the path of the cluster's program.
func buildProgram(ctx context.Context, root string) (string, error) {
	path, err := output(exec.CommandContext(ctx, filepath.Join(root, buildScript)))
	if err != nil {
		return "", fmt.Errorf("building the cluster's program: %w", err)
	}
	return strings.TrimSpace(path), nil
}

// loadBackend builds the test backend and gives its image to the node.
func (c *Cluster) loadBackend(ctx context.Context, root string) error {
	program := filepath.Join(c.dir, "backend")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", program, "./test/e2e/clustertest/backend")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if _, err := output(cmd); err != nil {
		return fmt.Errorf("building the test backend: %w", err)
	}
	return c.LoadImage(ctx, Image{
		Name: BackendImage, Entrypoint: []string{"/backend"}, Files: map[string]string{"/backend": program},
	})
}

// output runs the command; the error has what it said on standard error.
func output(cmd *exec.Cmd) (string, error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	return string(text), nil
}
