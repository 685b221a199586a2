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

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/porttest"
)

// wait-shutdown waits for a connection of a TCP service, after NGINX has ended. It stops all
// controllers that it sees, and so runs with one of its own among processes of their own.
func checkWaitShutdown(t *testing.T, binary string) {
	t.Parallel()
	alone := filepath.Join(t.TempDir(), "alone")
	script := fmt.Sprintf("#!/bin/sh\nexec unshare --pid --fork --mount-proc --kill-child %s \"$@\"\n", binary)
	if err := os.WriteFile(alone, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	port := porttest.Free(t)
	p := startProgram(t, alone, headgatetest.Service("a")+headgatetest.Endpoints("a", echoPort(t, "a"))+
		headgatetest.ConfigMap("tcp", fmt.Sprintf("%d: default/a:80", port)), "--tcp-services-configmap=default/tcp")
	t.Cleanup(func() {
		for _, pid := range childrenOf(t, p.cmd.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	controller := childrenOf(t, p.cmd.Process.Pid)[0]
	connection := headgatetest.Dial(t, port)
	talk(t, connection, "before", "a before")

	hook := exec.Command("nsenter", "--target", strconv.Itoa(controller), "--pid", "--mount", binary, "wait-shutdown")
	hook.Stdout, hook.Stderr = p.log, p.log
	if err := hook.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- hook.Wait() }()
	headgatetest.Eventually(t, "NGINX has ended", func() bool { return !opens(port) && len(childrenOf(t, controller)) == 0 })
	for range 20 {
		talk(t, connection, "still", "a still")
	}
	select {
	case err := <-ended:
		t.Fatalf("it did not wait for the connection: %v", err)
	default:
	}
	connection.Close()
	// The controller is the first process here: with it, the kernel ends the others.
	<-p.ended
	<-ended
	if !p.cmd.ProcessState.Success() {
		t.Errorf("the controller left with %s", p.cmd.ProcessState)
	}
}

// childrenOf are the processes that a process started.
func childrenOf(t *testing.T, parent int) (list []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), fmt.Sprintf("\nPPid:\t%d\n", parent)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pid)
	}
	return list
}
