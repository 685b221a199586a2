package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// A process of a pod, as the test process sees it.
type podProcess struct {
	pid int
	// first: all processes of the container end with it.
	first bool
}

// processesOf are the processes of a pod's only container.
func processesOf(t *testing.T, pod corev1.Pod) []podProcess {
	t.Helper()
	_, container, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if container == "" || err != nil {
		t.Fatalf("the pod %s has no container (%v): %+v", pod.Name, err, pod.Status)
	}
	var found []podProcess
	for _, group := range groups {
		// Some have ended meanwhile.
		text, err := os.ReadFile(group)
		if err != nil || !strings.Contains(string(text), container) {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(group), "status"))
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(group)))
		if err != nil {
			t.Fatal(err)
		}
		// The numbers of the process in each namespace; the container's is the last.
		_, after, _ := strings.Cut(string(status), "\nNSpid:")
		line, _, _ := strings.Cut(after, "\n")
		numbers := strings.Fields(line)
		found = append(found, podProcess{pid, len(numbers) > 1 && numbers[len(numbers)-1] == "1"})
	}
	if len(found) == 0 {
		t.Fatalf("no process of the pod %s is found", pod.Name)
	}
	return found
}

// killContainer kills all processes of a pod's container at once.
func killContainer(t *testing.T, pod corev1.Pod) {
	t.Helper()
	all := processesOf(t, pod)
	i := slices.IndexFunc(all, func(p podProcess) bool { return p.first })
	if i < 0 {
		t.Fatalf("the pod %s has no first process: %v", pod.Name, all)
	}
	if err := syscall.Kill(all[i].pid, syscall.SIGKILL); err != nil {
		t.Fatal(fmt.Errorf("killing the container of %s: %w", pod.Name, err))
	}
}
