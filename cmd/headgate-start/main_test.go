package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// acts is the variable that makes this test a runtime of containers, which starts
// this test again, which then keeps its capability and starts another program.
const acts = "HEADGATE_START_TEST"

func TestMain(m *testing.M) {
	runtime.LockOSThread()
	switch os.Getenv(acts) {
	case "runtime":
		fail(uninherit(), become(os.Args[0], acts+"=start"))
	case "start":
		// A loader that does not trust the program's environment would remove the variable.
		fail(keepPorts(), become("/bin/sh", "LD_PRELOAD=libc.so.6"))
	}
	runtime.UnlockOSThread()
	os.Exit(m.Run())
}

func fail(errs ...error) {
	fmt.Fprintln(os.Stderr, errors.Join(errs...))
	os.Exit(1)
}

// uninherit leaves the capabilities that Kubernetes gives: permitted, but not inheritable
// and so not ambient.
func uninherit() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return err
	}
	sets[0].Inheritable = 0
	return unix.Capset(&header, &sets[0])
}

func become(program string, env ...string) error {
	return syscall.Exec(program, []string{program, "-c", "cat /proc/self/status; env"}, append(env, os.Environ()...))
}

// TestKeepPorts: as a user that is not root and can't gain privileges, a program has the
// capability if the container has it, and starts if it has not. The library that is preloaded
// stays.
func TestKeepPorts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root sets a capability of a file")
	}
	start := capable(t)
	for name, c := range map[string]struct {
		has  []uintptr
		want string
	}{
		"the container has it":   {[]uintptr{unix.CAP_NET_BIND_SERVICE}, "0000000000000400"},
		"the container drops it": {nil, "0000000000000000"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(start)
			cmd.Env = []string{acts + "=runtime", "PATH=/usr/bin:/bin"}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 101, Gid: 82}, AmbientCaps: c.has}
			out, err := unprivileged(cmd)
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, set := range []string{"CapPrm", "CapEff", "CapAmb"} {
				if got := regexp.MustCompile(set + `:\s*(\S+)`).FindStringSubmatch(out); got == nil || got[1] != c.want {
					t.Errorf("%s: %q, want %s", set, got, c.want)
				}
			}
			if !strings.Contains(out, "NoNewPrivs:\t1") || !strings.Contains(out, "LD_PRELOAD=") {
				t.Errorf("the program may gain privileges, or its environment was cut: %s", out)
			}
		})
	}
}

// capable is this test as a program whose file permits the capability.
func capable(t *testing.T) string {
	t.Helper()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "start")
	if err := os.WriteFile(name, program, 0o755); err != nil {
		t.Fatal(err)
	}
	permitted := "\x00\x00\x00\x02\x00\x04\x00\x00" + strings.Repeat("\x00", 12)
	if err := unix.Setxattr(name, "security.capability", []byte(permitted), 0); err != nil {
		t.Fatal(err)
	}
	return name
}

// unprivileged runs a program that can't gain privileges, as in a Pod with
// allowPrivilegeEscalation false.
func unprivileged(cmd *exec.Cmd) (string, error) {
	type result struct {
		out []byte
		err error
	}
	done := make(chan result)
	go func() {
		// The thread is not unlocked: it ends with this function, as it can't have its privileges back.
		runtime.LockOSThread()
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			done <- result{nil, err}
			return
		}
		out, err := cmd.CombinedOutput()
		done <- result{out, err}
	}()
	r := <-done
	return string(r.out), r.err
}

// TestProgramOf: only the names that the image has for it start something.
func TestProgramOf(t *testing.T) {
	for name, want := range map[string]string{"dumb-init": "/usr/lib/headgate/dumb-init", "nginx-ingress-controller": "/usr/bin/headgate"} {
		if got, err := programOf(name); got != want || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if err := start([]string{"/bin/sh"}); err == nil || !strings.Contains(err.Error(), "must be dumb-init or nginx-ingress-controller") {
		t.Error(err)
	}
}
