package rundir

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRunning: a run directory is found as long as something listens on its socket, at any
// path, unless others can write to it.
func TestRunning(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "a b")
	if err := os.MkdirAll(filepath.Join(dir, "sock"), 0o711); err != nil {
		t.Fatal(err)
	}
	found := func() bool {
		t.Helper()
		dirs, err := Running()
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(dirs, dir)
	}
	if found() {
		t.Error("found without a socket")
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, controllerSocket)})
	if err != nil {
		t.Fatal(err)
	}
	if !found() {
		t.Error("not found")
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if found() {
		t.Error("found although others can write to it")
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	if found() {
		t.Error("found although nothing listens")
	}
}

func TestListening(t *testing.T) {
	const table = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 3187018 /run/a b/sock/controller.sock
0000000000000000: 00000003 00000000 00000000 0001 03 3187019 /run/connected
0000000000000000: 00000002 00000000 00010000 0001 01    18 @abstract
0000000000000000: 00000002 00000000 00010000 0001 01 19
0000000000000000: 00000002 00000000 00010000 0005 01    20 relative/sock/controller.sock
ffff8880: 00000002 00000000 00010000 0005 01    21 /last`
	if got, want := listening(table), []string{"/run/a b/sock/controller.sock", "/last"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
