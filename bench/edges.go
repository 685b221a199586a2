package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/internal/unit"
)

// An edgeSize says how much of a control with edges is measured.
type edgeSize struct {
	ingresses, certificateEvery int
	// edges are their numbers: after the last one, the control is killed, and an edge made slow.
	edges []int
	// samples are the changes of each kind, slow those beside a slow edge, and starts those of a real edge.
	samples, slow, starts int
}

func edgeSizeOf(short bool) edgeSize {
	if short {
		return edgeSize{ingresses: 1000, certificateEvery: 10, edges: []int{1, 10}, samples: 20, slow: 50, starts: 1}
	}
	return edgeSize{ingresses: 10000, certificateEvery: 10, edges: []int{1, 10, 100, 500}, samples: 60, slow: 200, starts: 5}
}

// An edgeScale is what was measured with one number of edges.
type edgeScale struct {
	edges int
	// alone is the control's resident memory before the first edge, most the most of it until all edges had
	// everything, and later what it has ten seconds later.
	alone, most, later int64
	// load is how long that took, loadCPU what the control used for it, and loaded what each edge sent and got.
	load, loadCPU time.Duration
	loaded        sum
	kinds         []edgeChanges
	// changed is the most resident memory at the end of all changes.
	changed int64
}

// edgeChanges are changes of a kind: times in milliseconds from the file's move into the folder.
type edgeChanges struct {
	name        string
	first, last []float64
	// spread is the time between the first and the last edge.
	spread []float64
	// cpu is what the control used for one, and each what an edge sent and got for it.
	cpu  time.Duration
	each sum
}

// measureEdges prints what a control and its edges take.
func measureEdges(ctx context.Context, s *stage, only string, short bool, to io.Writer) error {
	n := edgeSizeOf(short)
	switch number, err := strconv.Atoi(only); {
	case only == "":
	case only == "starts":
		n.edges = nil
	case err != nil || number < 1:
		return fmt.Errorf("invalid value %q of -only: it must be a number of edges, or starts", only)
	default:
		n.edges, n.starts = []int{number}, 0
	}
	p, err := s.placeControl(n.ingresses, n.certificateEvery)
	if err != nil {
		return err
	}
	var scales []edgeScale
	var last edgeFailures
	for i, edges := range n.edges {
		fmt.Fprintf(os.Stderr, "%d edges\n", edges)
		scale, err := p.measureScale(ctx, n, edges, func(ctx context.Context, h *headgate, f *fleet) (err error) {
			if i == len(n.edges)-1 {
				last, err = p.measureFailures(ctx, n, h, f)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%d edges: %w", edges, err)
		}
		scales = append(scales, scale)
		// All take many minutes: what there is shows before the last one.
		printEdges(scales, os.Stderr)
	}
	if len(scales) > 0 {
		printEdges(scales, to)
		last.print(to)
	}
	if n.starts > 0 {
		starts, err := p.measureEdgeStarts(ctx, n.starts)
		if err != nil {
			return err
		}
		printEdgeStarts(starts, to)
	}
	if short {
		return checkEdges(scales, last)
	}
	return nil
}

// measureScale starts a control and edges, and makes changes. then goes on with them.
func (p *edgePlace) measureScale(ctx context.Context, n edgeSize, edges int, then func(context.Context, *headgate, *fleet) error) (scale edgeScale, err error) {
	scale.edges = edges
	h, err := p.startControl(ctx)
	if err != nil {
		return scale, err
	}
	defer func() { h.process.stop() }()
	f, err := newFleet(p, edges)
	if err != nil {
		return scale, err
	}
	defer f.stop()
	if err := p.firstLoad(ctx, h, f, &scale); err != nil {
		return scale, err
	}
	for _, kind := range []struct {
		name   string
		change func(context.Context, *fleet, int) (edgeTimes, error)
	}{{"endpoints", p.changeEndpoints}, {"new host", p.addHost}} {
		changes, err := p.changes(ctx, h, f, n.samples, kind.change)
		if err != nil {
			return scale, fmt.Errorf("%s: %w", kind.name, err)
		}
		changes.name = kind.name
		scale.kinds = append(scale.kinds, changes)
	}
	if scale.changed, err = status(h.process.cmd.Process.Pid, "VmHWM"); err != nil {
		return scale, err
	}
	if err := f.equal(); err != nil {
		return scale, err
	}
	return scale, then(ctx, h, f)
}

// firstLoad has all edges connect at once.
func (p *edgePlace) firstLoad(ctx context.Context, h *headgate, f *fleet, scale *edgeScale) (err error) {
	pid := h.process.cmd.Process.Pid
	// What the start of the control took goes back meanwhile.
	time.Sleep(collected)
	if scale.alone, err = status(pid, "VmRSS"); err != nil {
		return err
	}
	if err := forgetPeak(pid); err != nil {
		return err
	}
	used, err := processTime(pid)
	if err != nil {
		return err
	}
	began := time.Now()
	f.start(ctx)
	if err := f.until(ctx, "everything", func(e *simulated) bool { return e.cuts.Load() > 0 }); err != nil {
		return err
	}
	scale.load, scale.loaded = time.Since(began), f.sum().since(sum{}, len(f.edges))
	now, err := processTime(pid)
	if err != nil {
		return err
	}
	scale.loadCPU = now - used
	if scale.most, err = status(pid, "VmHWM"); err != nil {
		return err
	}
	time.Sleep(collected)
	scale.later, err = status(pid, "VmRSS")
	return err
}

// forgetPeak has VmHWM begin again.
func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o200)
}

// edgeTimes are those of one change.
type edgeTimes struct{ first, last time.Duration }

// changes makes changes, one after the other.
func (p *edgePlace) changes(ctx context.Context, h *headgate, f *fleet, samples int, change func(context.Context, *fleet, int) (edgeTimes, error)) (c edgeChanges, err error) {
	pid := h.process.cmd.Process.Pid
	before := f.sum()
	used, err := processTime(pid)
	if err != nil {
		return c, err
	}
	for i := range samples {
		times, err := change(ctx, f, i)
		if err != nil {
			return c, err
		}
		c.first, c.last = append(c.first, milliseconds(times.first)), append(c.last, milliseconds(times.last))
		c.spread = append(c.spread, milliseconds(times.last-times.first))
		// The control is done with acknowledgements, too.
		time.Sleep(quiet + times.last)
	}
	now, err := processTime(pid)
	c.cpu, c.each = (now-used)/time.Duration(samples), f.sum().since(before, len(f.edges)*samples)
	return c, err
}

// arrive makes a change, and waits until all edges have it.
func (f *fleet) arrive(ctx context.Context, key unit.Key, change func() error) (t edgeTimes, err error) {
	a := f.expect(key, f.version(key))
	began := time.Now()
	if err := change(); err != nil {
		return t, err
	}
	if err := a.await(ctx); err != nil {
		return t, err
	}
	return edgeTimes{a.first.Sub(began), a.last.Sub(began)}, nil
}

// changeEndpoints gives a Service other endpoints.
func (p *edgePlace) changeEndpoints(ctx context.Context, f *fleet, i int) (edgeTimes, error) {
	service := (i*37 + 1) % p.ingresses
	p.moved++
	return f.arrive(ctx, backendOf(service), func() error { return p.moveEndpoints(service, p.ingresses+p.moved) })
}

// addHost adds a host, and removes it.
func (p *edgePlace) addHost(ctx context.Context, f *fleet, i int) (t edgeTimes, err error) {
	name := fmt.Sprintf("new-%05d", i)
	host := name + ".example.com"
	t, err = f.arrive(ctx, unit.Host.Key(host), func() error { return p.write(name, ingressOf(name, host, i, "")) })
	if err != nil {
		return t, err
	}
	time.Sleep(quiet + t.last)
	_, err = f.arrive(ctx, unit.Host.Key(host), func() error { return p.remove(name) })
	return t, err
}

func printEdges(scales []edgeScale, to io.Writer) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	defer w.Flush()
	line := func(name, budget string, cell func(edgeScale) string) {
		cells := []string{name}
		for _, s := range scales {
			cells = append(cells, cell(s))
		}
		fmt.Fprintln(w, strings.Join(append(cells, budget), "\t"))
	}
	line("edges", "budget", func(s edgeScale) string { return fmt.Sprint(s.edges) })
	line("all connect at once: all have everything after", "", func(s edgeScale) string { return fmt.Sprintf("%.2f s", s.load.Seconds()) })
	line("  control CPU, each", "", func(s edgeScale) string { return fmt.Sprintf("%.1f ms", milliseconds(s.loadCPU)/float64(s.edges)) })
	line("  received by each: resources", "", func(s edgeScale) string { return fmt.Sprint(s.loaded.resources) })
	line("  bytes on the wire", "", func(s edgeScale) string { return mebibytes(s.loaded.received) })
	line("control, resident, before", "", func(s edgeScale) string { return mebibytes(s.alone) })
	line("  most until all have everything", "", func(s edgeScale) string { return mebibytes(s.most) })
	line("  ten seconds later", "", func(s edgeScale) string { return mebibytes(s.later) })
	line("  of it for each edge", "", func(s edgeScale) string { return kibibytes(int(s.later-s.alone) / s.edges) })
	line("  most until the end of changes", "", func(s edgeScale) string { return mebibytes(s.changed) })
	for i, kind := range scales[0].kinds {
		times := func(what, budget string, of func(edgeChanges) []float64) {
			line(kind.name+what, budget, func(s edgeScale) string {
				values := of(s.kinds[i])
				return fmt.Sprintf("%.1f / %.1f ms", percentile(values, 50), percentile(values, 99))
			})
		}
		times(", to the last edge, p50 / p99", "p99 ≤ 15 ms with 10, ≤ 100 ms with 500", func(c edgeChanges) []float64 { return c.last })
		times(", to the first edge", "", func(c edgeChanges) []float64 { return c.first })
		times(", between both", "", func(c edgeChanges) []float64 { return c.spread })
		line("  control CPU", "", func(s edgeScale) string { return fmt.Sprintf("%.1f ms", milliseconds(s.kinds[i].cpu)) })
		line("  bytes that each edge gets / sends", "", func(s edgeScale) string {
			return fmt.Sprintf("%d / %d", s.kinds[i].each.received, s.kinds[i].each.sent)
		})
	}
}

// Bounds that even a busy machine keeps.
const maxLast = 500.0

func checkEdges(scales []edgeScale, last edgeFailures) error {
	for _, s := range scales {
		for _, kind := range s.kinds {
			if p50 := percentile(kind.last, 50); p50 > maxLast {
				return fmt.Errorf("%d edges, %s: p50 of %.1f ms is above %.0f ms", s.edges, kind.name, p50, maxLast)
			}
		}
	}
	return last.check()
}
