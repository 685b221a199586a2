package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"
)

// edgeFailures is what was measured when something failed, with many edges.
type edgeFailures struct {
	edges int
	// ready is how long the control that was started after another one was killed took to be ready, and again when
	// all edges had everything again, from the end of the first one.
	ready, again time.Duration
	// each is what an edge sent and got meanwhile, and cpu what the control used, with its start.
	each sum
	cpu  time.Duration
	// start is the most resident memory of the control until it was ready, and most until all edges were there.
	start, most int64

	// before and beside are endpoints without, and beside, an edge that never acknowledges.
	before, beside edgeChanges
	// slowBefore and slowMost are the control's resident memory before these, and the most of it.
	slowBefore, slowMost int64
	// cuts are how many the slow edge got once it went on.
	cuts int64
}

// measureFailures kills the control, and makes an edge slow.
func (p *edgePlace) measureFailures(ctx context.Context, n edgeSize, h *headgate, f *fleet) (r edgeFailures, err error) {
	r.edges = len(f.edges)
	h, err = p.killControl(ctx, h, f, &r)
	if err != nil {
		return r, fmt.Errorf("kill the control: %w", err)
	}
	defer h.process.stop()
	if err := p.slowEdge(ctx, n, h, f, &r); err != nil {
		return r, fmt.Errorf("a slow edge: %w", err)
	}
	return r, nil
}

// killControl kills it, and starts another one at the same place.
func (p *edgePlace) killControl(ctx context.Context, h *headgate, f *fleet, r *edgeFailures) (*headgate, error) {
	before, cuts := f.sum(), map[*simulated]int64{}
	for _, e := range f.edges {
		cuts[e] = e.cuts.Load()
	}
	began := time.Now()
	if err := h.process.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return nil, err
	}
	<-h.process.done
	h, err := p.startControl(ctx)
	if err != nil {
		return nil, err
	}
	pid := h.process.cmd.Process.Pid
	r.ready = time.Since(began)
	if r.start, err = status(pid, "VmHWM"); err != nil {
		return h, err
	}
	if err := f.until(ctx, "everything again", func(e *simulated) bool { return e.cuts.Load() > cuts[e] }); err != nil {
		return h, err
	}
	r.again, r.each = time.Since(began), f.sum().since(before, len(f.edges))
	if r.most, err = status(pid, "VmHWM"); err != nil {
		return h, err
	}
	if r.cpu, err = processTime(pid); err != nil {
		return h, err
	}
	return h, f.equal()
}

// slowEdge adds an edge that takes everything and then nothing, and makes changes.
func (p *edgePlace) slowEdge(ctx context.Context, n edgeSize, h *headgate, f *fleet, r *edgeFailures) (err error) {
	time.Sleep(collected)
	if r.before, err = p.changes(ctx, h, f, n.slow, p.changeEndpoints); err != nil {
		return err
	}
	slow, err := f.add(p, "slow")
	if err != nil {
		return err
	}
	defer slow.connection.Close()
	slow.hold = make(chan struct{})
	ctx, end := context.WithCancel(ctx)
	defer end()
	f.follow(ctx, slow)
	if err := h.process.until(ctx, "followed by the slow edge", func() bool { return slow.payload.Load() > 0 }); err != nil {
		return err
	}
	time.Sleep(collected)
	pid := h.process.cmd.Process.Pid
	if r.slowBefore, err = status(pid, "VmRSS"); err != nil {
		return err
	}
	if err := forgetPeak(pid); err != nil {
		return err
	}
	if r.beside, err = p.changes(ctx, h, f, n.slow, p.changeEndpoints); err != nil {
		return err
	}
	if r.slowMost, err = status(pid, "VmHWM"); err != nil {
		return err
	}
	close(slow.hold)
	want := f.edges[0].held()
	err = h.process.until(ctx, "followed by the slow edge, which goes on", func() bool { return maps.Equal(slow.held(), want) })
	r.cuts = slow.cuts.Load()
	return err
}

func (r edgeFailures) print(to io.Writer) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintf(w, "\n%d edges, the control is killed and started again\n", r.edges)
	fmt.Fprintf(w, "control ready after\t%.2f s\n", r.ready.Seconds())
	fmt.Fprintf(w, "all edges have everything again after\t%.2f s\n", r.again.Seconds())
	fmt.Fprintf(w, "each edge gets: resources\t%d\n", r.each.resources)
	fmt.Fprintf(w, "each edge gets / sends\t%d bytes / %s\n", r.each.received, kibibytes(int(r.each.sent)))
	fmt.Fprintf(w, "control CPU, with its start\t%.2f s\n", r.cpu.Seconds())
	fmt.Fprintf(w, "control, resident, most until ready\t%s\n", mebibytes(r.start))
	fmt.Fprintf(w, "control, resident, most until all edges are there\t%s\n", mebibytes(r.most))
	fmt.Fprintf(w, "\n%d edges and a slow one\tbefore\tbeside it\n", r.edges)
	for _, p := range []float64{50, 99} {
		fmt.Fprintf(w, "endpoints to the last other edge, p%.0f\t%.1f ms\t%.1f ms\n", p, percentile(r.before.last, p), percentile(r.beside.last, p))
	}
	fmt.Fprintf(w, "control CPU for a change\t%.1f ms\t%.1f ms\n", milliseconds(r.before.cpu), milliseconds(r.beside.cpu))
	fmt.Fprintf(w, "control, resident, before the changes / most\t\t%s / %s\n", mebibytes(r.slowBefore), mebibytes(r.slowMost))
	fmt.Fprintf(w, "cuts that the slow one gets\t\t%d for %d changes\n", r.cuts, len(r.beside.last))
}

func (r edgeFailures) check() error {
	if r.each.resources > 0 {
		return fmt.Errorf("each edge got %d resources again after the control was killed", r.each.resources)
	}
	if most := int64(3); r.cuts > most {
		return fmt.Errorf("the slow edge got %d cuts: at most %d were expected", r.cuts, most)
	}
	return nil
}

// An edgeStart is how long real edges took to be ready, and what CPU that took without NGINX, in milliseconds.
type edgeStart struct {
	name       string
	ready, cpu []float64
}

// measureEdgeStarts starts a real edge of a control again and again, with NGINX.
func (p *edgePlace) measureEdgeStarts(ctx context.Context, times int) ([]edgeStart, error) {
	fmt.Fprintln(os.Stderr, "starts of an edge")
	h, err := p.startControl(ctx)
	if err != nil {
		return nil, err
	}
	defer h.process.stop()
	at, err := p.stage.place("edge")
	if err != nil {
		return nil, err
	}
	pair, err := p.issue("edge")
	if err != nil {
		return nil, err
	}
	if err := p.writePair("edge", pair); err != nil {
		return nil, err
	}
	state, err := os.MkdirTemp("/dev/shm", "headgate-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(state)
	// The control gives back memory for a while after its own start.
	time.Sleep(collected)
	starts := []edgeStart{{name: "without --state-dir"}, {name: "with --state-dir, empty"}, {name: "with --state-dir, with everything"}}
	for range times {
		for i := range starts {
			var further []string
			if i > 0 {
				further = []string{"--state-dir", state}
			}
			ready, cpu, err := p.startEdge(ctx, at, further...)
			if err != nil {
				return nil, fmt.Errorf("start an edge %s: %w", starts[i].name, err)
			}
			starts[i].ready, starts[i].cpu = append(starts[i].ready, milliseconds(ready)), append(starts[i].cpu, milliseconds(cpu))
		}
		kept, err := filepath.Glob(filepath.Join(state, "*"))
		if err != nil {
			return nil, err
		}
		for _, name := range kept {
			os.RemoveAll(name)
		}
	}
	return starts, nil
}

// startEdge starts an edge, and ends it once it is ready.
func (p *edgePlace) startEdge(ctx context.Context, at place, further ...string) (ready, cpu time.Duration, err error) {
	h, err := begin(ctx, at, loopback, func(args ...string) (*process, error) {
		return p.stage.start(at.name, p.stage.headgate, p.edgeArguments(args, further)...)
	})
	if err != nil {
		return 0, 0, err
	}
	defer h.process.stop()
	if cpu, err = processTime(h.process.cmd.Process.Pid); err != nil {
		return 0, 0, err
	}
	c := h.client()
	defer c.close()
	// What is ready must serve: there are no backends.
	answer, err := c.get(ctx, hostName(p.ingresses-1))
	if err == nil && answer.status != 502 && answer.status != 504 {
		err = fmt.Errorf("a host is answered %d", answer.status)
	}
	return h.ready, cpu, err
}

func printEdgeStarts(starts []edgeStart, to io.Writer) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "\na real edge, with NGINX\tstart to ready\tbudget\tits CPU, without NGINX")
	for _, s := range starts {
		fmt.Fprintf(w, "%s\t%.0f ms\t≤ 1,500 ms\t%.0f ms\n", s.name, medianOf(s.ready), medianOf(s.cpu))
	}
}
