package rootfs_test

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/image/rootfs"
)

func file(content string) rootfs.File {
	return rootfs.File{Kind: tar.TypeReg, Mode: 0o644, Content: []byte(content)}
}

func link(target string) rootfs.File { return rootfs.File{Kind: tar.TypeSymlink, Target: target} }

func add(t *testing.T, tree *rootfs.Tree, name string, f rootfs.File) {
	t.Helper()
	if err := tree.Add(name, f); err != nil {
		t.Fatal(err)
	}
}

// TestAdd: a file goes where a symbolic link in its path leads, and directories are made.
func TestAdd(t *testing.T) {
	tree := rootfs.New()
	add(t, tree, "lib", link("usr/lib"))
	add(t, tree, "lib/x86/libc.so", file("c"))
	add(t, tree, "etc/alternatives/one", link("/lib/x86/libc.so"))
	add(t, tree, "usr/lib", rootfs.File{Kind: tar.TypeDir, Mode: 0o700}) // It is there.
	if got, want := strings.Join(tree.Paths(), " "), "etc etc/alternatives etc/alternatives/one lib usr usr/lib usr/lib/x86 usr/lib/x86/libc.so"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if f, err := tree.Open("/etc/alternatives/one"); err != nil || string(f.Content) != "c" {
		t.Errorf("%q, %v", f.Content, err)
	}
	for name, why := range map[string]string{"lib/x86/libc.so/x": "is a file", "loop/x": "too many symbolic links"} {
		add(t, tree, "loop", link("loop"))
		if err := tree.Add(name, file("")); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", name, err, why)
		}
	}
	if _, err := tree.Open("/nothing/here"); err == nil {
		t.Error("a file that does not exist is opened")
	}
}

// TestTar: the order in which files were added does not matter, owners and times are kept.
func TestTar(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	pack := func(names ...string) []byte {
		tree := rootfs.New()
		for _, name := range names {
			add(t, tree, name, rootfs.File{Kind: tar.TypeReg, Mode: 0o640, User: 101, Group: 82, Content: []byte(name)})
		}
		var out bytes.Buffer
		if err := tree.Tar(&out, at); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	one := pack("a/b", "a/c", "d")
	if !bytes.Equal(one, pack("d", "a/c", "a/b")) {
		t.Error("the order of adding changes the layer")
	}
	var got []string
	for r := tar.NewReader(bytes.NewReader(one)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !h.ModTime.Equal(at) {
			t.Errorf("%s has the time %v", h.Name, h.ModTime)
		}
		got = append(got, fmt.Sprintf("%s %o %d:%d", h.Name, h.Mode, h.Uid, h.Gid))
	}
	if got, want := strings.Join(got, ", "), "a/ 755 0:0, a/b 640 101:82, a/c 640 101:82, d 640 101:82"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestPorts: a layer has the capability of a program in the form that runtimes read, and it
// is not effective: the kernel would not start the program in a container that drops all.
func TestPorts(t *testing.T) {
	tree := rootfs.New()
	add(t, tree, "plain", file(""))
	add(t, tree, "start", rootfs.File{Kind: tar.TypeReg, Mode: 0o755, Ports: true})
	var out bytes.Buffer
	if err := tree.Tar(&out, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = h.PAXRecords["SCHILY.xattr.security.capability"]
	}
	permitted := "\x00\x00\x00\x02\x00\x04\x00\x00" + strings.Repeat("\x00", 12)
	if len(got) != 2 || got["plain"] != "" || got["start"] != permitted {
		t.Errorf("%q", got)
	}
}

// TestCheckPrograms: a missing library and a foreign machine are found. The program is this
// test, which needs the C library.
func TestCheckPrograms(t *testing.T) {
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	own, other := elf.EM_X86_64, elf.EM_AARCH64
	if runtime.GOARCH == "arm64" {
		own, other = other, own
	}
	tree := rootfs.New()
	add(t, tree, "usr/bin/program", rootfs.File{Kind: tar.TypeReg, Mode: 0o755, Content: program})
	if err := rootfs.CheckPrograms(other, tree); err == nil || !strings.Contains(err.Error(), "/usr/bin/program: is for") {
		t.Errorf("a foreign machine: %v", err)
	}
	parsed, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	needed, err := parsed.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, library := range needed {
		if err := rootfs.CheckPrograms(own, tree); err == nil || !strings.Contains(err.Error(), "no library "+library+", which /usr/bin/program needs") {
			t.Errorf("without %s: %v", library, err)
		}
		add(t, tree, "usr/lib/x86_64-linux-gnu/"+library, file(""))
	}
	if err := rootfs.CheckPrograms(own, tree); err != nil {
		t.Errorf("with all libraries: %v", err)
	}
}
