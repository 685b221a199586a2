package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cpuTime is what a process of one thread has used.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0, err
	}
	on, _, _ := strings.Cut(string(text), " ")
	ns, err := strconv.ParseInt(on, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the schedstat of %d: %w", pid, err)
	}
	return time.Duration(ns), nil
}

// status is a size in bytes from /proc/PID/status.
func status(pid int, field string) (int64, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == field+":" {
			kib, err := strconv.ParseInt(words[1], 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("process %d has no %s", pid, field)
}

// privateMemory is what a process has for itself, in bytes. Shared mappings do
// not count, even where no other process has touched a page yet.
func privateMemory(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return 0, err
	}
	var total int64
	private := false
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) >= 5 && !strings.HasSuffix(words[0], ":"):
			private = strings.HasSuffix(words[1], "p")
		case private && strings.HasPrefix(words[0], "Private_"):
			kib, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read the smaps of %d: %w", pid, err)
			}
			total += kib << 10
		}
	}
	return total, nil
}

// worker is the one worker of the NGINX whose master wrote a pid file.
func worker(pidFile string) (int, error) {
	all, err := workers(pidFile)
	if err != nil {
		return 0, err
	}
	if len(all) != 1 {
		return 0, fmt.Errorf("the NGINX of %s has %d workers and not one", pidFile, len(all))
	}
	return all[0], nil
}

// workers are all workers of an NGINX, also those of earlier generations.
func workers(pidFile string) ([]int, error) {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return nil, err
	}
	master, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", pidFile, err)
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var all []int
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // ended meanwhile
		}
		// The name of the program, in parentheses, may contain spaces.
		_, behind, found := strings.Cut(string(stat), ") ")
		words := strings.Fields(behind)
		if !found || len(words) < 2 || words[1] != strconv.Itoa(master) {
			continue
		}
		// Others manage caches.
		title, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
		if err != nil || !bytes.HasPrefix(title, []byte("nginx: worker process")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, err
		}
		all = append(all, pid)
	}
	return all, nil
}

// pin lets a process run on one core only.
func pin(pid, core int) error {
	out, err := exec.Command("taskset", "-cp", strconv.Itoa(core), strconv.Itoa(pid)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("pin process %d to core %d: %w: %s", pid, core, err, out)
	}
	return nil
}
