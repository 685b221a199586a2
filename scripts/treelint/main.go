// Command treelint keeps the tree small enough to find one's way: it reports files, functions
// and packages that are too long, too many rooms below internal, and files that should not be
// tracked.
//
//	treelint [ROOT]
//
// It looks at the files that git tracks, and at their text alone. exceptions.go lists what is over a
// limit, with the reason. An exception that is not needed any more is reported as well, so that the list
// gets shorter. The exit status is 1 if there is something to report.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	complaints, err := lint(root, exceptions())
	if err != nil {
		fmt.Fprintln(os.Stderr, "treelint:", err)
		os.Exit(2)
	}
	for _, c := range complaints {
		fmt.Println(c)
	}
	if len(complaints) > 0 {
		os.Exit(1)
	}
}

// Limits.
const (
	maxBytes         = 300_000
	maxFileLines     = 400
	maxPackageLines  = 2000
	maxFunctionLines = 80
	maxRooms         = 25
)

// lint returns what is wrong with the tree at root, sorted.
func lint(root string, exceptions map[string]string) ([]string, error) {
	command := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	t := tree{packages: map[string]int{}, rooms: map[string]bool{}, over: map[string]string{}}
	for name := range strings.SplitSeq(string(output), "\x00") {
		if err := t.look(root, name); err != nil {
			return nil, err
		}
	}
	t.sum()
	return t.complaints(exceptions), nil
}

// A tree is what was seen of it.
type tree struct {
	// packages are lines of Go without tests, by directory. Lua has modules of one file.
	packages map[string]int
	rooms    map[string]bool
	// over are complaints, by what an exception of them is called.
	over map[string]string
}

// look looks at one file.
func (t *tree) look(root, name string) error {
	info, err := os.Lstat(filepath.Join(root, name))
	// The index has files that the working tree has no more.
	if errors.Is(err, os.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return err
	}
	if len(text) > maxBytes {
		t.over[name] = fmt.Sprintf("%s: has %d bytes, more than %d: do not track it, or make it smaller", name, len(text), maxBytes)
	}
	if info.Mode()&0o111 != 0 && !bytes.HasPrefix(text, []byte("#!")) {
		t.over[name] = name + ": is executable, and not a script: do not track programs"
	}
	if room, below := strings.CutPrefix(name, "internal/"); below && strings.Contains(room, "/") {
		t.rooms[room[:strings.Index(room, "/")]] = true
	}
	if isProduct(name) {
		t.measure(name, string(text))
	}
	return nil
}

// isProduct reports whether a file is code that is built into a program.
func isProduct(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return slices.Contains([]string{"internal", "cmd", "lua", "scripts", "examples", "bench"}, first) &&
		slices.Contains([]string{".go", ".lua"}, path.Ext(name)) &&
		!strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "/testdata/")
}

// measure counts lines of a file and its functions.
func (t *tree) measure(name, text string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > maxFileLines {
		t.over[name] = fmt.Sprintf("%s: has %d lines, more than %d: cut it", name, len(lines), maxFileLines)
	}
	if path.Ext(name) != ".go" {
		return
	}
	t.packages[path.Dir(name)] += len(lines)
	begun := -1
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "func ") && !strings.HasSuffix(line, "}"):
			begun = i
		case line == "}" && begun >= 0:
			if long := i - begun - 1; long > maxFunctionLines {
				t.over[name+":"+lines[begun]] = fmt.Sprintf("%s:%d: a function has %d lines, more than %d: cut it", name, begun+1, long, maxFunctionLines)
			}
			begun = -1
		}
	}
}

// sum looks at what is known of the whole tree.
func (t *tree) sum() {
	for directory, lines := range t.packages {
		if lines > maxPackageLines {
			t.over[directory] = fmt.Sprintf("%s: the package has %d lines of Go without tests, more than %d: cut it along a seam", directory, lines, maxPackageLines)
		}
	}
	if len(t.rooms) > maxRooms {
		t.over["internal"] = fmt.Sprintf("internal: %d directories, more than %d: put packages into a room with others", len(t.rooms), maxRooms)
	}
}

func (t *tree) complaints(exceptions map[string]string) []string {
	var list []string
	for name, complaint := range t.over {
		if exceptions[name] == "" {
			list = append(list, complaint)
		}
	}
	for name := range exceptions {
		if t.over[name] == "" {
			list = append(list, name+": is within the limits: remove its exception from scripts/treelint/exceptions.go")
		}
	}
	slices.Sort(list)
	return list
}
