package cgroup

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Mount mounts the root of this process's cgroup namespace, which must be the
// cluster's group, over the machine's trees.
func Mount(trees []Tree) error {
	if trees[0].v2() {
		return mount2()
	}
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting %s: %w", root, err)
	}
	for _, tree := range trees {
		if err := os.MkdirAll(tree.mount, 0o755); err != nil {
			return fmt.Errorf("mounting %s: %w", tree.mount, err)
		}
		// With "none" the kernel accepts options other than controllers, like name=systemd.
		if err := unix.Mount("none", tree.mount, "cgroup", 0, tree.options); err != nil {
			return fmt.Errorf("mounting %s (%s): %w", tree.mount, tree.options, err)
		}
	}
	return nil
}

func mount2() error {
	// All version 2 mounts are one file system, which can't be mounted on itself.
	if err := unix.Unmount(root, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting %s: %w", root, err)
	}
	if err := unix.Mount("none", root, "cgroup2", 0, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", root, err)
	}
	// The namespace's root gives its children controllers only when no process is in it.
	components := filepath.Join(root, "components")
	if err := os.Mkdir(components, 0o755); err != nil {
		return fmt.Errorf("making a control group for the components: %w", err)
	}
	if err := join(components); err != nil {
		return err
	}
	return enableControllers(root)
}
