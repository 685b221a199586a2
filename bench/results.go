package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/internal/nginx"
)

// Results is what results.json holds.
type Results struct {
	Machine Machine   `json:"machine"`
	Time    time.Time `json:"time"`
	Short   bool      `json:"short"`
	CPU     []CPURow  `json:"cpu,omitempty"`
	// Features compare a request that a feature takes part in with a plain one,
	// both of Headgate; and the plain one with that of a Headgate without.
	Features []CPURow `json:"features,omitempty"`
	// Guards compare requests that pass guards with those that pass the same guards by hand.
	Guards []CPURow `json:"guards,omitempty"`
	// Backends compare ways in which requests meet their backends.
	Backends []CPURow `json:"backends,omitempty"`
	// Handshakes are of TLS, without resumption.
	Handshakes []CPURow `json:"handshakes,omitempty"`
	Scales     []Scale  `json:"scales,omitempty"`
	// Starts compare what operators see, off and on, with many hosts.
	Starts []Start `json:"starts,omitempty"`
	// Series is what the series of request metrics take.
	Series *Series `json:"series,omitempty"`
	// Cluster is nil where nothing was measured on a real API server.
	Cluster *ClusterResults `json:"cluster,omitempty"`
}

// A Machine is where it was measured.
type Machine struct {
	Processor string `json:"processor"`
	Cores     int    `json:"cores"`
	Memory    string `json:"memory"`
	System    string `json:"system"`
	Kernel    string `json:"kernel"`
	Nginx     string `json:"nginx"`
	Go        string `json:"go"`
}

func describeMachine(capabilities nginx.Capabilities) Machine {
	find := func(file, pattern string) string {
		// A machine that does not say is one without a name.
		text, _ := os.ReadFile(file)
		if found := regexp.MustCompile(pattern).FindSubmatch(text); found != nil {
			return strings.TrimSpace(string(found[1]))
		}
		return "unknown"
	}
	return Machine{
		Processor: find("/proc/cpuinfo", `(?m)^model name\s*: (.*)$`),
		Cores:     runtime.NumCPU(),
		Memory:    find("/proc/meminfo", `MemTotal:\s*(.*)`),
		System:    find("/etc/os-release", `PRETTY_NAME="(.*)"`),
		Kernel:    find("/proc/sys/kernel/osrelease", `(.*)`),
		Nginx:     capabilities.Version,
		Go:        runtime.Version(),
	}
}

func (r Results) print(to io.Writer) {
	m := r.Machine
	fmt.Fprintf(to, "%s, %d cores, %s; %s, Linux %s; NGINX %s, %s\n\n",
		m.Processor, m.Cores, m.Memory, m.System, m.Kernel, m.Nginx, m.Go)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.DiscardEmptyColumns)
	defer w.Flush()
	printCPU(w, "worker CPU per proxied request", r.CPU)
	printCPU(w, "worker CPU per request, feature on", r.Features)
	printCPU(w, "worker CPU per request, guarded", r.Guards)
	printCPU(w, "worker CPU per request, by backend", r.Backends)
	printCPU(w, "worker CPU per TLS handshake", r.Handshakes)
	fmt.Fprintln(w)
	r.printScales(w)
	if len(r.Starts) > 0 {
		printStarts(w, r.Starts)
	}
	if r.Series != nil {
		r.Series.print(w)
	}
	if r.Cluster != nil {
		fmt.Fprintln(w)
		r.Cluster.print(w)
	}
}

func printCPU(w io.Writer, what string, rows []CPURow) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "%s\tbeside\tHeadgate\tratio\thalf of the rounds\tbudget\n", what)
	for _, row := range rows {
		budget := ""
		if row.Budget > 0 {
			budget = fmt.Sprintf("≤ %.2f", row.Budget)
		}
		fmt.Fprintf(w, "%s\t%.2f µs\t%.2f µs\t%.3f\t%.3f to %.3f\t%s\n",
			row.Name, row.Base, row.Cost, row.Ratio, row.Low, row.High, budget)
	}
}

func (r Results) printScales(w io.Writer) {
	line := func(name string, cell func(Scale) string) {
		cells := []string{name}
		for _, s := range r.Scales {
			cells = append(cells, cell(s))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if len(r.Scales) == 0 {
		return
	}
	line("Ingresses", func(s Scale) string { return fmt.Sprint(s.Ingresses) })
	line("rename to first 200, p50", func(s Scale) string { return fmt.Sprintf("%.1f ms", s.P50) })
	line("  p99", func(s Scale) string { return fmt.Sprintf("%.1f ms", s.P99) })
	line("  max", func(s Scale) string { return fmt.Sprintf("%.1f ms of %d", s.Max, s.Samples) })
	line("reloads", func(s Scale) string { return fmt.Sprint(s.Reloads) })
	line("requests lost on another host", func(s Scale) string { return fmt.Sprintf("%d of %d", s.Lost, s.Requests) })
	line("nginx.conf", func(s Scale) string { return fmt.Sprintf("%d bytes, %.8s…", s.ConfBytes, s.ConfHash) })
	line("start to ready", func(s Scale) string { return fmt.Sprintf("%.0f ms", s.Ready) })
	line("controller, resident, maximum", func(s Scale) string { return mebibytes(s.ControllerPeak) })
	line("controller, resident, at the end", func(s Scale) string { return mebibytes(s.ControllerNow) })
	line("worker, private, before the first request", func(s Scale) string { return mebibytes(s.WorkerIdle) })
	line("worker, private, all hosts served", func(s Scale) string { return mebibytes(s.WorkerUsed) })
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// Bounds that even a busy machine keeps.
const (
	maxRatio = 2.0
	maxMore  = 0.5
	maxP50   = 100.0
)

// Budgets of what is added to a request, by that of the same request by hand; and, of the access log,
// by what it adds by hand.
const (
	maxMetrics = 0.08
	maxTracing = 0.03
	maxLog     = 1
)

// check returns an error for every bound that is broken.
func (r Results) check() error {
	var errs []error
	// What a feature costs has no bound but where it is off.
	off := slices.DeleteFunc(slices.Clone(r.Features), func(row CPURow) bool { return row.Budget == 0 })
	for _, row := range slices.Concat(r.CPU, off, r.Handshakes) {
		most := maxRatio
		if row.More {
			most = maxMore
		}
		// By a difference, which may be next to nothing, there is no bound that all machines keep.
		if row.BaseMore || row.More && row.Budget == 0 {
			continue
		}
		if row.Ratio > most {
			errs = append(errs, fmt.Errorf("%s: ratio %.3f is above %.1f", row.Name, row.Ratio, most))
		}
	}
	for _, s := range r.Scales {
		if s.P50 > maxP50 {
			errs = append(errs, fmt.Errorf("%d Ingresses: p50 of %.1f ms is above %.0f ms", s.Ingresses, s.P50, maxP50))
		}
		if s.Lost > 0 || s.Requests == 0 {
			errs = append(errs, fmt.Errorf("%d Ingresses: %d of %d requests lost", s.Ingresses, s.Lost, s.Requests))
		}
		if s.Reloads > 0 {
			errs = append(errs, fmt.Errorf("%d Ingresses: %d reloads", s.Ingresses, s.Reloads))
		}
		if s.ConfHash != r.Scales[0].ConfHash {
			errs = append(errs, fmt.Errorf("%d Ingresses: another nginx.conf than with %d", s.Ingresses, r.Scales[0].Ingresses))
		}
	}
	return errors.Join(errs...)
}
