package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

// ticks is how many clock ticks /proc counts in a second, on all platforms of Go.
const ticks = 100

// processes are what /proc has of NGINX's processes. Counters go on when processes end.
type processes struct {
	// master is the process ID of NGINX's master, 0 if there is none.
	master func() int
	proc   procfs.FS

	count, memory, virtual, started, cpu, read, written *prometheus.Desc

	mu sync.Mutex
	// group is the master that was read last, ended the seconds of masters before it with their
	// workers, and seconds those of its own.
	group          int
	ended, seconds float64
	// io are the bytes of each process, and the sums those of all that were ever read.
	io                map[int]procfs.ProcIO
	readSum, writeSum float64
}

func newProcesses(master func() int, proc procfs.FS) *processes {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prefix+"nginx_process_"+name, help, nil, nil)
	}
	const ifReadable = " It is there if /proc/PID/io can be read: as root, or with the capability SYS_PTRACE."
	return &processes{
		master: master, proc: proc, io: map[int]procfs.ProcIO{},
		count:   desc("num_procs", "Number of NGINX's processes: the master and all workers, those of earlier reloads too."),
		memory:  desc("resident_memory_bytes", "Resident memory of NGINX's processes. Memory that they share counts for each of them."),
		virtual: desc("virtual_memory_bytes", "Virtual memory of NGINX's processes."),
		started: desc("oldest_start_time_seconds", "When the oldest process of NGINX was started, as Unix time."),
		cpu:     desc("cpu_seconds_total", "Processor time of NGINX's processes, user and system, of those that have ended too."),
		read:    desc("read_bytes_total", "Bytes that NGINX's processes read from storage."+ifReadable),
		written: desc("write_bytes_total", "Bytes that NGINX's processes wrote to storage."+ifReadable),
	}
}

// Describe implements prometheus.Collector.
func (p *processes) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.count, p.memory, p.virtual, p.started, p.cpu, p.read, p.written} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (p *processes) Collect(to chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.members()
	gauge := func(d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	counter := func(d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value)
	}
	resident, virtual := 0, 0
	for _, stat := range all {
		resident += stat.ResidentMemory()
		virtual += int(stat.VirtualMemory())
	}
	gauge(p.count, float64(len(all)))
	gauge(p.memory, float64(resident))
	gauge(p.virtual, float64(virtual))
	if began, ok := p.oldest(all); ok {
		gauge(p.started, began)
	}
	counter(p.cpu, p.processorTime(all))
	if p.addIO(all) {
		counter(p.read, p.readSum)
		counter(p.written, p.writeSum)
	}
}

// members are the processes of the master's group, the master first: what a worker took that
// ends in between is then missing, and not counted twice.
func (p *processes) members() []procfs.ProcStat {
	group := p.master()
	if group != p.group {
		p.ended += p.seconds
		p.group, p.seconds = group, 0
		clear(p.io)
	}
	if group == 0 {
		return nil
	}
	master, err := p.stat(group)
	if err != nil {
		return nil
	}
	list := []procfs.ProcStat{master}
	// Without /proc there are no numbers.
	all, _ := p.proc.AllProcs()
	for _, process := range all {
		if stat, err := process.Stat(); err == nil && stat.PGRP == group && stat.PID != group {
			list = append(list, stat)
		}
	}
	return list
}

func (p *processes) stat(pid int) (procfs.ProcStat, error) {
	process, err := p.proc.Proc(pid)
	if err != nil {
		return procfs.ProcStat{}, err
	}
	return process.Stat()
}

// oldest is false if no process is left.
func (p *processes) oldest(all []procfs.ProcStat) (began float64, ok bool) {
	if len(all) == 0 {
		return 0, false
	}
	machine, err := p.proc.Stat()
	if err != nil {
		return 0, false
	}
	first := all[0].Starttime
	for _, stat := range all {
		first = min(first, stat.Starttime)
	}
	return float64(machine.BootTime) + float64(first)/ticks, true
}

// processorTime is that of all processes that there ever were: the master knows what its workers
// had taken when they ended.
func (p *processes) processorTime(all []procfs.ProcStat) float64 {
	sum := 0.0
	for i, stat := range all {
		sum += stat.CPUTime()
		if i == 0 {
			sum += float64(stat.CUTime+stat.CSTime) / ticks
		}
	}
	p.seconds = max(p.seconds, sum)
	return p.ended + p.seconds
}

// addIO adds what processes have read and written since the last time. It reports whether that
// can be read.
func (p *processes) addIO(all []procfs.ProcStat) bool {
	now := map[int]procfs.ProcIO{}
	for _, stat := range all {
		process, err := p.proc.Proc(stat.PID)
		if err != nil {
			continue
		}
		io, err := process.IO()
		if err != nil {
			continue
		}
		before := p.io[stat.PID]
		if io.ReadBytes < before.ReadBytes || io.WriteBytes < before.WriteBytes {
			before = procfs.ProcIO{} // Another process has the number now.
		}
		p.readSum += float64(io.ReadBytes - before.ReadBytes)
		p.writeSum += float64(io.WriteBytes - before.WriteBytes)
		now[stat.PID] = io
	}
	p.io = now
	return len(now) > 0
}
