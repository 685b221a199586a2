package clustertest

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// childVariable makes the test program start a cluster, print where it is, and
// wait to be killed.
const childVariable = "CLUSTERTEST_CHILD"

func runChild() int {
	c, err := New(context.Background(), Options{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(c.dir, c.network.pid, c.process.Process.Pid)
	<-c.Ended()
	return 1
}

// A trace is what a cluster could leave behind.
type trace struct {
	dir string
	// namespaces are as /proc names them. They are held open, since the kernel
	// gives the name of a namespace that is gone to a new one.
	namespaces []string
	held       []*os.File
	group      string // the name of its control groups
}

// traceOf looks at a running cluster: the process IDs are of a process inside
// and of the one outside that cleans up.
func traceOf(t *testing.T, dir string, inside, outside int) trace {
	t.Helper()
	found := trace{dir: dir, group: fmt.Sprintf("headgate-cluster-%d", outside)}
	for _, kind := range []string{"net", "pid", "mnt"} {
		path := fmt.Sprintf("/proc/%d/ns/%s", inside, kind)
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		name, err := os.Readlink(path)
		if err != nil {
			t.Fatal(err)
		}
		found.namespaces = append(found.namespaces, name)
		found.held = append(found.held, file)
	}
	if left := found.left(t); len(left) < 8 {
		t.Fatalf("only %d traces of a running cluster: %q", len(left), left)
	}
	return found
}

// left lists the traces that are still there.
func (tr trace) left(t *testing.T) []string {
	t.Helper()
	var left, own []string
	for _, file := range tr.held {
		own = append(own, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd()))
	}
	// A process may end while it is looked at; then there is no link.
	for _, pattern := range []string{"/proc/[0-9]*/ns/*", "/proc/[0-9]*/fd/*"} {
		links, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links {
			target, err := os.Readlink(link)
			if err == nil && slices.Contains(tr.namespaces, target) && !slices.Contains(own, link) {
				left = append(left, link)
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), tr.dir) {
		left = append(left, "mounts in "+tr.dir)
	}
	err = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		// Other programs create and remove groups meanwhile.
		if err == nil && entry.Name() == tr.group {
			left = append(left, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func TestCloseLeavesNothing(t *testing.T) {
	c, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr := traceOf(t, c.dir, c.network.pid, c.process.Process.Pid)
	err = c.CreateBackend(t.Context(), BackendDeployment("default", "web", 2, 0))
	if closed := c.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	if left := tr.left(t); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if _, err := os.Stat(tr.dir); !os.IsNotExist(err) {
		t.Errorf("the state directory: %v, want it gone", err)
	}
}

func TestKilledTestLeavesNothing(t *testing.T) {
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1")
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(line)
	if len(fields) != 3 {
		t.Fatalf("the child says %q", line)
	}
	dir := fields[0]
	inside, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatalf("the child says %q", line)
	}
	outside, err := strconv.Atoi(fields[2])
	if err != nil {
		t.Fatalf("the child says %q", line)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	tr := traceOf(t, dir, inside, outside)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// It was killed, which is an error.
	_ = child.Wait()
	Eventually(t, time.Minute, func(context.Context) error {
		if left := tr.left(t); len(left) > 0 {
			return fmt.Errorf("left: %q", left)
		}
		if _, err := os.Stat(filepath.Join(dir, "etcd")); err == nil {
			return fmt.Errorf("left: %s", dir)
		}
		return nil
	})
}
