package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// licences are the licences and notices of Headgate, of Go and of the modules in a program,
// by their paths below the folder with Headgate's.
func licences(ctx context.Context, build *debug.BuildInfo) (map[string][]byte, error) {
	args := []string{"list", "-m", "-f", "{{.Path}}\t{{.Dir}}", build.Main.Path}
	for _, m := range build.Deps {
		args = append(args, m.Path)
	}
	modules, err := exec.CommandContext(ctx, "go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("find the modules of the program: %w", err)
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go: %w", err)
	}
	files := map[string][]byte{}
	for line := range strings.Lines(string(modules) + "std\t" + string(root)) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if module == build.Main.Path {
			module = "."
		}
		if err := addLicences(files, module, dir); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// addLicences adds the files of a module, of which there must be one.
func addLicences(files map[string][]byte, module, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("find the licence of %s: %w", module, err)
	}
	found, isLicence := false, regexp.MustCompile(`(?i)^(licen[sc]e|notice|copying|copyright)\b[^/]*$`)
	for _, e := range entries {
		if !e.Type().IsRegular() || !isLicence.MatchString(e.Name()) {
			continue
		}
		if files[path.Join(module, e.Name())], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
		found = true
	}
	if !found {
		return fmt.Errorf("no licence of %s in %s", module, dir)
	}
	return nil
}
