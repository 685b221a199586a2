package e2e_test

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDockerfile runs the commands of deploy/Dockerfile that make the content of the images,
// without Docker. The files then have their owners, and the program that binds low ports, and
// nothing else, has a capability.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("../../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	stage, _, found := strings.Cut(string(text), "\nFROM scratch AS content\nCOPY --from=build /build/root/ /\n")
	if !found {
		t.Fatal("deploy/Dockerfile has no stage that copies /build/root")
	}
	folder := t.TempDir()
	commands := 0
	for line := range strings.SplitSeq(strings.ReplaceAll(stage, "\\\n", " "), "\n") {
		command, isRun := strings.CutPrefix(line, "RUN ")
		if !isRun {
			continue
		}
		commands++
		c := exec.CommandContext(t.Context(), "sh", "-euc", strings.ReplaceAll(command, "/build/", folder+"/"))
		c.Dir = "../.."
		c.Env = append(os.Environ(), "TARGETARCH="+runtime.GOARCH, "VERSION=v1.2.3", "REVISION=abc")
		if output, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, output)
		}
	}
	if commands < 3 {
		t.Fatalf("deploy/Dockerfile has %d commands, want 3", commands)
	}
	root := filepath.Join(folder, "root")
	// Version 2, with CAP_NET_BIND_SERVICE (bit 10) permitted.
	want := map[string]string{"usr/lib/headgate/start": "\x00\x00\x00\x02\x00\x04" + strings.Repeat("\x00", 14)}
	if got := capabilities(t, root); !maps.Equal(got, want) {
		t.Errorf("these files have capabilities: %q, want %q", got, want)
	}
	if target, err := os.Readlink(filepath.Join(root, "nginx-ingress-controller")); err != nil || target != "/usr/lib/headgate/start" {
		t.Errorf("/nginx-ingress-controller leads to %q (%v)", target, err)
	}
	info, err := os.Stat(filepath.Join(root, "etc/ingress-controller"))
	if err != nil {
		t.Fatal(err)
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 101 {
		t.Errorf("/etc/ingress-controller belongs to user %d, want 101", owner)
	}
}

// capabilities are those of all files in a folder.
func capabilities(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		value := make([]byte, 100)
		n, err := unix.Lgetxattr(path, "security.capability", value)
		if err == unix.ENODATA {
			return nil
		}
		if err != nil {
			return &fs.PathError{Op: "lgetxattr", Path: path, Err: err}
		}
		name, err := filepath.Rel(root, path)
		found[name] = string(value[:n])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
