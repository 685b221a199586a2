// Command headgate-start starts the programs of an image with the capability to listen on
// ports below 1024, where the container has it. Its names in the image say what it starts.
//
// A process that is not root loses its capabilities when it starts a program, unless the
// file of the program has them, or they are ambient. Kubernetes gives containers no ambient
// capabilities. So the file of this program has CAP_NET_BIND_SERVICE, and passes it on as an
// ambient one, to NGINX too. Files that have capabilities themselves would not do as well:
// the loader removes LD_PRELOAD and others from their environment.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func main() {
	if err := start(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "headgate-start:", err)
		os.Exit(127)
	}
}

// start becomes the program that the name of this one stands for.
func start(args []string) error {
	program, err := programOf(filepath.Base(args[0]))
	if err != nil {
		return err
	}
	// Capabilities are those of a thread; those of this one become the program's.
	runtime.LockOSThread()
	if err := keepPorts(); err != nil {
		fmt.Fprintf(os.Stderr, "headgate-start: keep CAP_NET_BIND_SERVICE: %v; ports below 1024 can't be listened on\n", err)
	}
	return fmt.Errorf("start %s: %w", program, syscall.Exec(program, args, os.Environ()))
}

// programOf is the program for a name in the image.
func programOf(name string) (string, error) {
	switch name {
	case "dumb-init":
		return "/usr/lib/headgate/dumb-init", nil
	case "nginx-ingress-controller":
		return "/usr/bin/headgate", nil
	}
	return "", errors.New("the name must be dumb-init or nginx-ingress-controller")
}

// keepPorts makes the capability ambient, if it is permitted. Root needs no ambient ones.
func keepPorts() error {
	if os.Geteuid() == 0 {
		return nil
	}
	const mask = 1 << unix.CAP_NET_BIND_SERVICE
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return err
	}
	if sets[0].Permitted&mask == 0 {
		return nil
	}
	sets[0].Inheritable |= mask
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_NET_BIND_SERVICE, 0, 0)
}
