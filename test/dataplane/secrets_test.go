package dataplane_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// asUser has the children of a command run as a user.
func asUser(cmd *exec.Cmd, uid, gid int) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return cmd
}

// opensMemory reports whether a process of a user can open the memory of another
// process; that of this process if root is false.
func opensMemory(root bool, uid, pid int) (bool, string) {
	cmd := exec.Command("/bin/sh", "-c", fmt.Sprintf(": < /proc/%d/mem", pid))
	if root {
		asUser(cmd, uid, uid)
	}
	out, err := cmd.CombinedOutput()
	return err == nil, string(out)
}

// checkMemory checks that no process of the user opens the memory of NGINX's, though
// it opens that of an ordinary process of the user.
func checkMemory(t *testing.T, g *headgatetest.Instance, root bool, uid int) {
	t.Helper()
	ordinary := exec.Command("sleep", "60")
	if root {
		asUser(ordinary, uid, uid)
	}
	if err := ordinary.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = ordinary.Process.Kill()
		_ = ordinary.Wait()
	}()
	if ok, why := opensMemory(root, uid, ordinary.Process.Pid); !ok {
		t.Skipf("the kernel forbids it for all processes: %s", why)
	}
	for _, pid := range []int{g.State().PID, g.Process.PID()} {
		if ok, _ := opensMemory(root, uid, pid); ok {
			t.Errorf("user %d opens the memory of process %d", uid, pid)
		}
		limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(limits)) {
			if fields := strings.Fields(line); strings.HasPrefix(line, "Max core") && pid != g.Process.PID() && fields[4] != "0" {
				t.Errorf("process %d: %s", pid, line)
			}
		}
	}
}

// D2: private keys of all tenants are in the memory of NGINX's processes.
func TestOthersCannotReadTheMemoryOfWorkers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start processes of the workers' user")
	}
	g := headgatetest.Start(t, headgatetest.Options{})
	var info syscall.Stat_t
	if err := syscall.Stat(filepath.Join(g.RunDir.Path(), "tmp"), &info); err != nil {
		t.Fatal(err)
	}
	checkMemory(t, g, true, int(info.Uid))
	g.ApplyReloading(headgatetest.Config("proxy-buffer-size: 12k"))
	checkMemory(t, g, true, int(info.Uid))
}

const runAs = "HEADGATE_TEST_RUN_AS"

// D2 where the controller, the master and the workers run as one user, as in the image:
// NGINX works, reloads and is taken over after the controller's end.
func TestOneUserForAll(t *testing.T) {
	if uid, err := strconv.Atoi(os.Getenv(runAs)); err == nil {
		if err := nginx.CloseMemory(); err != nil {
			t.Fatal(err)
		}
		if ok, _ := opensMemory(false, uid, os.Getpid()); ok {
			t.Error("a process of the controller's user opens its memory")
		}
		g := headgatetest.Start(t, headgatetest.Options{})
		checkMemory(t, g, false, uid)
		g.ApplyReloading(headgatetest.Config("proxy-buffer-size: 12k"))
		checkMemory(t, g, false, uid)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can start processes of another user")
	}
	// In the Debian 13 root, NGINX runs by chroot, which needs root.
	headgatetest.Long(t)
	const uid = 101
	// The binary of the test is in a directory of its user.
	folder, err := os.MkdirTemp("", "hg-one-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	binary, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "test"), binary, 0o755)
	}
	if err == nil {
		err = os.Chown(folder, uid, uid)
	}
	if err == nil {
		err = os.Chmod(folder, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := asUser(exec.Command(filepath.Join(folder, "test"), "-test.run=^TestOneUserForAll$", "-test.v"), uid, uid)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), fmt.Sprint(runAs, "=", uid), "TMPDIR="+folder, "HOME="+folder)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("%s", out)
	}
}
