package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func openDir(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestRunDirModes(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	d := openDir(t, filepath.Join(tempDirOpen(t), "run"))
	if err := d.WriteLua(map[string][]byte{"headgate/a.lua": nil}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{
		"": 0o711, "sock": 0o700, "tmp": 0o700, "lua": 0o755, "lua/headgate": 0o755, "lua/headgate/a.lua": 0o644,
	} {
		info, err := os.Stat(filepath.Join(d.Path(), name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%q has mode %o, want %o", name, info.Mode().Perm(), want)
		}
		owner := int(info.Sys().(*syscall.Stat_t).Uid)
		if name == "tmp" && d.Worker().User != "" {
			if owner != d.worker.uid || owner == 0 {
				t.Errorf("tmp belongs to %d", owner)
			}
		} else if owner != os.Geteuid() {
			t.Errorf("%q belongs to %d", name, owner)
		}
	}
	if isRoot := os.Geteuid() == 0; isRoot != (d.Worker().User != "") || isRoot != (d.Worker().Group != "") {
		t.Errorf("worker %+v", d.Worker())
	}
}

// tempDirOpen is a tempDir that other users can access.
func tempDirOpen(t *testing.T) string {
	t.Helper()
	path := tempDir(t)
	if err := os.Chmod(path, 0o711); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRunDirIsHeldOnce(t *testing.T) {
	path := tempDir(t)
	d := openDir(t, path)
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("opened twice: %v", err)
	}
	d.Close()
	openDir(t, path).Close()
}

func TestRunDirRefused(t *testing.T) {
	file := filepath.Join(tempDir(t), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(tempDir(t), "link")
	if err := os.Symlink(tempDir(t), link); err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{
		file: "not a directory",
		link: "must be a directory",
		filepath.Join(tempDirOpen(t), strings.Repeat("long", 25)): "use a shorter directory",
	}
	if os.Geteuid() == 0 {
		closed := filepath.Join(tempDir(t), "in", "it") // tempDir is 0700.
		refused[closed] = "cannot access"
		foreign := tempDirOpen(t)
		if err := os.Chown(foreign, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		refused[foreign] = "must be a directory of the current user"
	} else {
		refused["/"] = "must be a directory of the current user"
	}
	for path, want := range refused {
		d, err := Open(path)
		if err == nil {
			d.Close()
			t.Errorf("%s was opened", path)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestRunDirSpelling(t *testing.T) {
	parent := tempDirOpen(t)
	link := filepath.Join(tempDirOpen(t), "link")
	if err := os.Symlink(parent, link); err != nil {
		t.Fatal(err)
	}
	d := openDir(t, link+"/../link//run")
	if want := filepath.Join(parent, "run"); d.Path() != want {
		t.Errorf("%s, want %s", d.Path(), want)
	}
}

func TestRunDirWrite(t *testing.T) {
	d := openDir(t, tempDir(t))
	if err := d.Write(map[string][]byte{"nginx.conf": []byte("one"), "a/b": []byte("two")}); err != nil {
		t.Fatal(err)
	}
	if err := d.Write(map[string][]byte{"nginx.conf": []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteGeneration(17); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"nginx.conf": "1", "a/b": "two", "generation": "17\n"} {
		got, err := os.ReadFile(filepath.Join(d.Path(), name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"../out", "/out", ""} {
		if err := d.Write(map[string][]byte{name: nil}); err == nil {
			t.Errorf("%q was written", name)
		}
	}
	left, err := filepath.Glob(filepath.Join(d.Path(), ".new-*"))
	if err != nil || left != nil {
		t.Errorf("left over: %v %v", left, err)
	}
}

func TestLinkConf(t *testing.T) {
	d := openDir(t, tempDir(t))
	if err := d.Write(map[string][]byte{"nginx.conf": []byte("one")}); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "nginx.conf")
	// A link of an earlier container leads elsewhere.
	if err := os.Symlink("/nowhere", link); err != nil {
		t.Fatal(err)
	}
	if err := d.LinkConf(link); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(link); err != nil || string(got) != "one" {
		t.Errorf("%q, %v", got, err)
	}
	if err := d.LinkConf(filepath.Join(link, "below")); err == nil {
		t.Error("a link below a file was made")
	}
}

func TestRunDirWriteLua(t *testing.T) {
	d := openDir(t, tempDir(t))
	for _, files := range []map[string][]byte{
		{"headgate/a.lua": []byte("a"), "headgate/old.lua": nil, "gone/x.lua": nil},
		{"headgate/a.lua": []byte("b"), "headgate/new/c.lua": nil},
	} {
		if err := d.WriteLua(files); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	err := filepath.WalkDir(filepath.Join(d.Path(), "lua"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			got = append(got, strings.TrimPrefix(path, d.Path()+"/lua/"))
		}
		return err
	})
	if err != nil || strings.Join(got, " ") != "headgate/a.lua headgate/new/c.lua" {
		t.Errorf("%v %v", got, err)
	}
}

func TestDefaultRunDir(t *testing.T) {
	own := tempDir(t)
	t.Setenv("XDG_RUNTIME_DIR", own)
	want := filepath.Join(own, "headgate-8080")
	if os.Geteuid() == 0 {
		want = "/run/headgate-8080"
	}
	if got := Default("8080"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := runtimeDirs(1000), own; len(got) != 1 || got[0] != want {
		t.Errorf("a user's: %q, want %s", got, want)
	}
}

// D3: another user who takes the name of the directory in the temporary one prevents
// no start, and explain finds the directory that is used.
func TestATakenNameIsAvoided(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make directories of another user")
	}
	parent := tempDir(t)
	if err := os.Chmod(parent, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", parent)
	for _, c := range []struct {
		name string
		take func(path string) error
	}{
		{"folder", func(path string) error { return errors.Join(os.Mkdir(path, 0o711), os.Chown(path, 65534, 65534)) }},
		{"link", func(path string) error { return os.Symlink("/", path) }},
		{"writable", func(path string) error { return errors.Join(os.Mkdir(path, 0o711), os.Chmod(path, 0o777)) }},
		{"free", func(string) error { return nil }},
	} {
		if err := c.take(temporary(c.name)); err != nil {
			t.Fatal(err)
		}
		path, err := makeIn(nil, c.name)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if taken := path == temporary(c.name); taken != (c.name == "free") {
			t.Errorf("%s: %s is used", c.name, path)
		}
		d, err := Open(path)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		d.Close()
		if again := findIn(nil, c.name); again != path {
			t.Errorf("%s: %s is used, but %s is found", c.name, path, again)
		}
	}
}

// D4: systemd-tmpfiles spares what it can't lock, and what is lost is written again.
func TestRestore(t *testing.T) {
	d := openDir(t, tempDir(t))
	if err := d.WriteLua(map[string][]byte{"headgate/a.lua": []byte("a")}); err != nil {
		t.Fatal(err)
	}
	folder, err := os.Open(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("another process locks the directory: %v", err)
	}
	for _, name := range []string{"lua", "tmp"} {
		if err := os.RemoveAll(filepath.Join(d.Path(), name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Restore(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(d.Path(), "lua/headgate/a.lua")); string(text) != "a" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(d.Path(), "tmp")); err != nil {
		t.Error(err)
	}
}

// The controller's API survives restarts of NGINX.
func TestRemoveSocket(t *testing.T) {
	d := openDir(t, tempDir(t))
	for _, name := range []string{d.Socket(), d.ControllerSocket()} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.RemoveSocket(); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(d.Path(), "sock", "*")); err != nil || len(left) != 1 || left[0] != d.ControllerSocket() {
		t.Errorf("left are %q, %v", left, err)
	}
}

// tempDir is a directory with a short name that workers can access.
func tempDir(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("", "hg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(path) })
	return path
}
