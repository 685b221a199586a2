// Package cgroup makes a control group for a cluster, in version 1 and version
// 2, mounts it as the root of a namespace and removes it. All that it knows of
// Kubernetes is which controllers the kubelet needs.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	root   = "/sys/fs/cgroup"
	prefix = "headgate-cluster-"
)

// A Tree is one hierarchy of control groups: one a controller in version 1,
// one for all in version 2.
type Tree struct {
	mount   string // where it is mounted
	options string // what it is mounted with, "" for version 2
	own     string // the directory of this process
}

func (t Tree) v2() bool { return t.options == "" }

// Trees returns those of the version that the machine uses, at least one. On a
// hybrid machine, which has version 2 below /sys/fs/cgroup/unified, that is
// version 1.
func Trees() ([]Tree, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(root, &stat); err != nil {
		return nil, fmt.Errorf("looking at %s: %w", root, err)
	}
	v2 := stat.Type == unix.CGROUP2_SUPER_MAGIC
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading the mounts: %w", err)
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("reading the control groups: %w", err)
	}
	found := parse(string(mounts), string(own), v2)
	if len(found) == 0 {
		return nil, errors.New("no control groups are mounted at " + root)
	}
	return found, nil
}

// parse reads /proc/self/mountinfo and /proc/self/cgroup.
func parse(mounts, own string, v2 bool) []Tree {
	var found []Tree
	for line := range strings.Lines(mounts) {
		where, what, ok := strings.Cut(strings.TrimSpace(line), " - ")
		left, right := strings.Fields(where), strings.Fields(what)
		if !ok || len(left) < 5 || len(right) < 3 || !strings.HasPrefix(left[4], root) {
			continue
		}
		t := Tree{mount: left[4]}
		switch {
		case v2 && right[0] == "cgroup2":
		case !v2 && right[0] == "cgroup":
			t.options = strings.TrimPrefix(strings.TrimPrefix(right[2], "rw,"), "xattr,")
		default:
			continue
		}
		t.own = t.mount
		if below, err := filepath.Rel(left[3], ownGroup(own, t.options)); err == nil && !strings.HasPrefix(below, "..") {
			t.own = filepath.Join(t.mount, below)
		}
		if !slices.ContainsFunc(found, func(o Tree) bool { return o.options == t.options }) {
			found = append(found, t)
		}
	}
	return found
}

// ownGroup returns the path in /proc/self/cgroup for a tree's options.
func ownGroup(own, options string) string {
	for line := range strings.Lines(own) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && (fields[1] == options || slices.Contains(strings.Split(options, ","), fields[1])) {
			return fields[2]
		}
	}
	return "/"
}

// A Group is the cluster's own, in every tree.
type Group struct {
	name  string
	trees []Tree
}

// New makes a group with this process's ID in its name.
func New(trees []Tree) (*Group, error) {
	g := &Group{name: fmt.Sprintf("%s%d", prefix, os.Getpid()), trees: trees}
	for _, tree := range trees {
		if err := g.make(tree); err != nil {
			return nil, errors.Join(fmt.Errorf("making a control group: %w", err), g.Remove())
		}
	}
	return g, nil
}

// parent is where the cluster's group is made. In version 2 a group that holds
// processes cannot give controllers to its children; only the root can.
func parent(tree Tree) string {
	if tree.v2() {
		return tree.mount
	}
	return tree.own
}

func (g *Group) make(tree Tree) error {
	if tree.v2() {
		if err := enableControllers(tree.mount); err != nil {
			return err
		}
	}
	dir := filepath.Join(parent(tree), g.name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := prefer(tree, dir); err != nil {
		return err
	}
	if !slices.Contains(strings.Split(tree.options, ","), "cpuset") {
		return nil
	}
	// In version 1 no process can enter a group without processors and memory nodes.
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent(tree), file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// prefer gives a group ten times the default share of the processors. Otherwise the cluster and all
// its pods together would have that of one process beside it, such as a compiler, and the kubelet would
// stop containers that do not answer it in time.
func prefer(tree Tree, dir string) error {
	file, share := "cpu.weight", "1000"
	if !tree.v2() {
		file, share = "cpu.shares", "10240"
		if !slices.Contains(strings.Split(tree.options, ","), "cpu") {
			return nil
		}
	}
	return os.WriteFile(filepath.Join(dir, file), []byte(share), 0o644)
}

// enableControllers gives the children of a version 2 group the controllers for
// the limits of containers.
func enableControllers(dir string) error {
	has, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	controllers := []string{"cpu", "memory", "pids", "cpuset", "io", "hugetlb"}
	for _, needed := range controllers[:3] {
		if !slices.Contains(strings.Fields(string(has)), needed) {
			return fmt.Errorf("%s lacks the controller %s, which the kubelet needs", dir, needed)
		}
	}
	for _, controller := range strings.Fields(string(has)) {
		if !slices.Contains(controllers, controller) {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o644); err != nil {
			return fmt.Errorf("enabling the controller %s: %w", controller, err)
		}
	}
	return nil
}

// Enter moves this process into the group.
func (g *Group) Enter() error {
	for _, tree := range g.trees {
		if err := join(filepath.Join(parent(tree), g.name)); err != nil {
			return err
		}
	}
	return nil
}

// Leave moves this process back to its old group.
func (g *Group) Leave() error {
	for _, tree := range g.trees {
		if err := join(tree.own); err != nil {
			return err
		}
	}
	return nil
}

func join(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0o644); err != nil {
		return fmt.Errorf("entering a control group: %w", err)
	}
	return nil
}

// Remove removes the group and all groups in it, waiting up to five seconds
// for their last processes to be gone.
func (g *Group) Remove() error {
	deadline := time.Now().Add(5 * time.Second)
	for _, tree := range g.trees {
		for {
			err := removeTree(filepath.Join(parent(tree), g.name))
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("removing a control group: %w", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}

// removeTree removes directories, the innermost first. The kernel's files in them
// go with them.
func removeTree(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	for _, dir := range slices.Backward(dirs) {
		if e := unix.Rmdir(dir); e != nil && !errors.Is(e, unix.ENOENT) {
			err = errors.Join(err, fmt.Errorf("%s: %w", dir, e))
		}
	}
	return err
}

// RemoveStale removes the groups of clusters that were killed together with
// the process that would have removed them.
func RemoveStale(trees []Tree) error {
	for _, tree := range trees {
		groups, err := filepath.Glob(filepath.Join(parent(tree), prefix+"*"))
		if err != nil {
			return err
		}
		for _, group := range groups {
			pid := strings.TrimPrefix(filepath.Base(group), prefix)
			if _, err := os.Stat("/proc/" + pid); err == nil {
				continue
			}
			if err := removeTree(group); err != nil {
				return fmt.Errorf("removing a control group that was left behind: %w", err)
			}
		}
	}
	return nil
}
