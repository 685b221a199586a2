package main

import (
	"fmt"
	"io"
	"strings"
)

func (r *ClusterResults) print(w io.Writer) {
	line := func(name, budget string, cell func(ClusterScale) string) {
		cells := []string{name}
		for _, s := range r.Scales {
			cells = append(cells, cell(s))
		}
		fmt.Fprintln(w, strings.Join(append(cells, budget), "\t"))
	}
	line("real API server, Ingresses", "budget", func(s ClusterScale) string { return fmt.Sprint(s.Ingresses) })
	for i, change := range r.Scales[0].Changes {
		line(change.Name+", p50", "≤ 20 ms", func(s ClusterScale) string { return fmt.Sprintf("%.1f ms", s.Changes[i].P50) })
		line("  p99", "≤ 100 ms", func(s ClusterScale) string { return fmt.Sprintf("%.1f ms", s.Changes[i].P99) })
		line("  max", "", func(s ClusterScale) string {
			return fmt.Sprintf("%.1f ms of %d", s.Changes[i].Max, s.Changes[i].Samples)
		})
		line("  wrong answers", "0", func(s ClusterScale) string { return fmt.Sprint(s.Changes[i].Wrong) })
	}
	line("requests lost on another host", "0", func(s ClusterScale) string { return s.Bystander.String() })
	line("reloads", "0", func(s ClusterScale) string { return fmt.Sprint(s.Reloads) })
	line("Services, endpoints, certificates", "", func(s ClusterScale) string {
		return fmt.Sprintf("%d, %d, %d", s.Services, s.Endpoints, s.Certificates)
	})
	line("start to ready", "≤ 10 s", func(s ClusterScale) string { return fmt.Sprintf("%.0f ms", s.Ready) })
	line("requests to the API server until then", "", func(s ClusterScale) string { return fmt.Sprint(s.Requests) })
	line("controller, resident, maximum until then", "≤ 400 MiB", func(s ClusterScale) string { return mebibytes(s.ControllerReady) })
	line("controller, resident, maximum", "≤ 400 MiB", func(s ClusterScale) string { return mebibytes(s.ControllerPeak) })
	line("worker, private, before the first request", "", func(s ClusterScale) string { return mebibytes(s.WorkerIdle) })
	line("worker, private, all served", "≤ 80 MiB", func(s ClusterScale) string { return mebibytes(s.WorkerUsed) })
	fmt.Fprintln(w)
	r.Storm.print(w)
}

func (s Storm) print(w io.Writer) {
	line := func(name, budget string, cell func(Wave) string) {
		fmt.Fprintln(w, strings.Join([]string{name, cell(s.Created), cell(s.Changed), budget}, "\t"))
	}
	fmt.Fprintf(w, "storm, among %d Ingresses\t%d new Ingresses\tendpoints of %d Services\tbudget\n", s.Ingresses, s.Created.Changes, s.Changed.Changes)
	line("all acknowledged", "", func(w Wave) string { return fmt.Sprintf("%.0f ms", w.Acknowledged) })
	line("all served right", "", func(w Wave) string { return fmt.Sprintf("%.0f ms", w.Right) })
	line("controller CPU", "", func(w Wave) string { return fmt.Sprintf("%.2f s", w.CPU) })
	line("wrong answers", "0", func(w Wave) string { return fmt.Sprint(w.Wrong) })
	line("requests lost", "0", func(w Wave) string { return w.Bystander.String() })
	fmt.Fprintf(w, "reloads\t%d\t\t0\n", s.Reloads)
}

func (b Bystander) String() string { return fmt.Sprintf("%d of %d", b.Lost, b.Requests) }
