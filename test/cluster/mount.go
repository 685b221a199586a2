package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// setupMounts makes the mounts of the cluster's own namespace: what the
// programs write outside the state directory lands in memory and ends with
// the namespace.
func setupMounts(state string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	for _, dir := range []string{"/run", "/var/lib", "/var/log"} {
		if state == dir || strings.HasPrefix(state, dir+"/") {
			return fmt.Errorf("the state directory %s must not be below %s", state, dir)
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mounting %s: %w", dir, err)
		}
	}
	return nil
}

// hideSettings puts files over the kernel settings that the kubelet insists on
// changing: they belong to the whole machine.
func hideSettings() error {
	for setting, value := range map[string]string{
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/keys/root_maxbytes": "25000000",
	} {
		file := filepath.Join("/run", "setting-"+filepath.Base(setting))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("hiding %s: %w", setting, err)
		}
		if err := unix.Mount(file, filepath.Join("/proc/sys", setting), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hiding %s: %w", setting, err)
		}
	}
	return nil
}
