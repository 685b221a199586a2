package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// stopNode ends the kubelet, containerd and all pods at once, like a machine without power.
func (c *cluster) stopNode() error {
	if !c.pods {
		return errors.New("a cluster without pods has no node")
	}
	if err := c.kubelet.end(syscall.SIGKILL); err != nil {
		return err
	}
	// The kernel kills containerd with it, and not the processes that hold the pods.
	if err := c.containerd.end(syscall.SIGKILL); err != nil {
		return err
	}
	now, err := running()
	if err != nil {
		return fmt.Errorf("ending pods: %w", err)
	}
	for pid := range now.parent {
		if now.inPod(pid) {
			// It may have ended with another one.
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	return nil
}

// startNode starts containerd and the kubelet, which start the pods again.
func (c *cluster) startNode(ctx context.Context) error {
	if err := c.run(ctx, c.containerd); err != nil {
		return err
	}
	return c.run(ctx, c.kubelet)
}

// processes are those of this process namespace, with their parents.
type processes struct {
	parent map[int]int
	shims  []int // hold pods, whose processes are below them
}

func (p processes) inPod(pid int) bool {
	for ; pid > 1; pid = p.parent[pid] {
		if slices.Contains(p.shims, pid) {
			return true
		}
	}
	return false
}

func running() (processes, error) {
	found := processes{parent: map[int]int{}}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return found, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			// It has ended meanwhile.
			continue
		}
		// PID (NAME) STATE PARENT
		before, after, _ := strings.Cut(string(text), ") ")
		id, name, _ := strings.Cut(before, " (")
		fields := strings.Fields(after)
		pid, err := strconv.Atoi(id)
		if err != nil || len(fields) < 2 {
			return found, fmt.Errorf("reading %s: %q", file, text)
		}
		if found.parent[pid], err = strconv.Atoi(fields[1]); err != nil {
			return found, fmt.Errorf("reading %s: %w", file, err)
		}
		if strings.HasPrefix(name, "containerd-shim") {
			found.shims = append(found.shims, pid)
		}
	}
	return found, nil
}
