package metrics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

// A machine is a /proc with processes.
type machine struct {
	t    *testing.T
	path string
}

func newMachine(t *testing.T) machine {
	m := machine{t, t.TempDir()}
	m.write("stat", "cpu  1 1 1 1 1 1 1 1 1 1\nbtime 1000\n")
	return m
}

func (m machine) write(name, text string) {
	m.t.Helper()
	file := filepath.Join(m.path, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// run makes a process that has taken ticks of user and system time, and its children.
func (m machine) run(pid, group, user, system, children, started int) {
	m.write(fmt.Sprintf("%d/stat", pid), fmt.Sprintf("%d (nginx: a) b) S 1 %d %d 0 -1 0 0 0 0 0 %d %d %d 0 20 0 1 0 %d 4096 2 %s\n",
		pid, group, group, user, system, children, started, "0 0 0 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0"))
}

func (m machine) end(pid int) {
	if err := os.RemoveAll(filepath.Join(m.path, fmt.Sprint(pid))); err != nil {
		m.t.Fatal(err)
	}
}

func (m machine) io(pid, read, written int) {
	m.write(fmt.Sprintf("%d/io", pid), fmt.Sprintf("rchar: 1\nwchar: 1\nsyscr: 1\nsyscw: 1\nread_bytes: %d\nwrite_bytes: %d\ncancelled_write_bytes: 0\n", read, written))
}

// TestProcesses: user and system time count; neither a worker that ends nor a master that is
// replaced takes from a counter; and what can't be read has no sample.
func TestProcesses(t *testing.T) {
	m, master := newMachine(t), 0
	proc, err := procfs.NewFS(m.path)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(newProcesses(func() int { return master }, proc))
	want := func(when string, wanted map[string]float64) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			one := f.GetMetric()[0]
			got[f.GetName()[len(prefix+"nginx_process_"):]] = one.GetGauge().GetValue() + one.GetCounter().GetValue()
		}
		if fmt.Sprint(got) != fmt.Sprint(wanted) {
			t.Errorf("%s: %v, want %v", when, got, wanted)
		}
	}
	page := float64(os.Getpagesize())
	want("without NGINX", map[string]float64{"num_procs": 0, "cpu_seconds_total": 0, "resident_memory_bytes": 0, "virtual_memory_bytes": 0})

	master = 10
	m.run(10, 10, 100, 0, 0, 500)
	m.run(11, 10, 200, 300, 0, 600)
	m.run(12, 99, 900, 900, 0, 1)
	want("a master with a worker", map[string]float64{
		"num_procs": 2, "cpu_seconds_total": 6, "oldest_start_time_seconds": 1005, "resident_memory_bytes": 4 * page, "virtual_memory_bytes": 8192,
	})
	m.io(10, 10, 20)
	m.io(11, 1, 2)
	m.end(11)
	m.run(10, 10, 100, 0, 400, 500)
	want("a worker that ended and is not counted by its master yet", map[string]float64{
		"num_procs": 1, "cpu_seconds_total": 6, "oldest_start_time_seconds": 1005, "resident_memory_bytes": 2 * page, "virtual_memory_bytes": 4096,
		"read_bytes_total": 10, "write_bytes_total": 20,
	})
	m.run(10, 10, 100, 0, 600, 500)
	m.run(11, 10, 0, 0, 0, 700)
	m.io(11, 3, 4)
	m.io(10, 15, 20)
	want("a worker that ended", map[string]float64{
		"num_procs": 2, "cpu_seconds_total": 7, "oldest_start_time_seconds": 1005, "resident_memory_bytes": 4 * page, "virtual_memory_bytes": 8192,
		"read_bytes_total": 18, "write_bytes_total": 24,
	})
	m.end(10)
	m.end(11)
	master = 20
	m.run(20, 20, 50, 50, 0, 900)
	m.io(20, 1, 1)
	want("another master", map[string]float64{
		"num_procs": 1, "cpu_seconds_total": 8, "oldest_start_time_seconds": 1009, "resident_memory_bytes": 2 * page, "virtual_memory_bytes": 4096,
		"read_bytes_total": 19, "write_bytes_total": 25,
	})
}

// TestConnections: there are none while NGINX is away.
func TestConnections(t *testing.T) {
	var away error
	registry := prometheus.NewRegistry()
	registry.MustRegister(newConnections(func(context.Context) (Connections, error) { return Connections{Accepted: 5, Waiting: 2}, away }))
	count := func() (n int) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			n += len(f.GetMetric())
		}
		return n
	}
	if n := count(); n != 7 {
		t.Errorf("%d samples", n)
	}
	away = errors.New("away")
	if n := count(); n != 0 {
		t.Errorf("%d samples without NGINX", n)
	}
}
