package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

const (
	// largePerNamespace: 100,000 Ingresses are those of 500 namespaces.
	largePerNamespace = 200
	// largeCertificateEvery: a fifth of them has a certificate.
	largeCertificateEvery = 5
	// changesPerSecond are made to other objects while changes are measured once more.
	changesPerSecond = 1000
	// cachedHosts are as many as a worker's cache of hosts has room for.
	cachedHosts = 10000
	// collected is how long after its start the controller has given back what only the start took.
	collected = 10 * time.Second
)

// largeScales are the numbers of Ingresses: what grows faster than they do is seen.
var largeScales = []int{1000, 10000, 100000}

// A largeScale is what was measured at one of them, with a Service of five endpoints each.
type largeScale struct {
	ClusterScale
	// ControllerLater is the controller's resident memory ten seconds after its start.
	ControllerLater int64
	// WorkerCached is a worker's private memory when as many hosts were served as its cache has room for.
	WorkerCached int64
	// Busy are the same changes as Changes, beside Rate others a second.
	Busy     []Change
	Rate     float64
	Bystands Bystander
	// ChangeCPU is what the controller used for one of the others, with what the measured ones took.
	ChangeCPU time.Duration
	Uses      []use
}

// measureLarge prints what Headgate takes on a real API server with up to 100,000 hosts.
func measureLarge(ctx context.Context, s *stage, n size, short bool, to io.Writer) (err error) {
	k, err := s.startCluster(ctx, layout{perNamespace: largePerNamespace, certificateEvery: largeCertificateEvery})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := k.close(); err == nil {
			err = closeErr
		}
	}()
	scales := largeScales
	if short {
		scales = scales[:2]
	}
	var all []largeScale
	for _, ingresses := range scales {
		begin := time.Now()
		if err := k.fill(ctx, ingresses); err != nil {
			return fmt.Errorf("create %d Ingresses: %w", ingresses, err)
		}
		fmt.Fprintf(os.Stderr, "%d Ingresses after %.0f s\n", ingresses, time.Since(begin).Seconds())
		scale, err := k.measureLargeScale(ctx, n.samples)
		if err != nil {
			return fmt.Errorf("%d Ingresses: %w", ingresses, err)
		}
		all = append(all, scale)
		// All take many minutes: what there is shows before the last one.
		printLarge(all, os.Stderr)
	}
	return printLarge(all, to)
}

func (k *kube) measureLargeScale(ctx context.Context, samples int) (scale largeScale, err error) {
	if err := k.largeStart(ctx, samples, &scale); err != nil {
		return scale, err
	}
	scale.Uses, err = k.measureUses(ctx)
	return scale, err
}

// largeStart measures a start, memory and changes.
func (k *kube) largeStart(ctx context.Context, samples int, scale *largeScale) error {
	scale.Ingresses = k.created
	h, err := k.startScale(ctx, &scale.ClusterScale)
	if err != nil {
		return err
	}
	defer h.process.stop()
	pid := h.process.cmd.Process.Pid
	// Memory that only the start took goes back after a while, without an event to wait for.
	time.Sleep(collected)
	if scale.ControllerLater, err = status(pid, "VmRSS"); err != nil {
		return err
	}
	// A reload, which is counted below, ends the first worker.
	if h.worker, err = worker(filepath.Join(h.runDir, "nginx.pid")); err != nil {
		return err
	}
	if err := h.touchAll(ctx, min(k.created, cachedHosts)); err != nil {
		return err
	}
	if scale.WorkerCached, err = privateMemory(h.worker); err != nil {
		return err
	}
	if err := h.useAll(ctx, &scale.ClusterScale, k.certificateEvery); err != nil {
		return err
	}
	if err := k.change(ctx, h, samples, &scale.ClusterScale); err != nil {
		return err
	}
	if err := k.busy(ctx, h, samples, scale); err != nil {
		return err
	}
	if scale.Reloads, err = h.reloads(); err != nil {
		return err
	}
	scale.ControllerPeak, err = status(pid, "VmHWM")
	return err
}

// busy makes the same changes beside many others.
func (k *kube) busy(ctx context.Context, h *headgate, samples int, scale *largeScale) error {
	var busy ClusterScale
	pid := h.process.cmd.Process.Pid
	used, err := processTime(pid)
	if err != nil {
		return err
	}
	others := k.changeOthers(ctx)
	err = k.change(ctx, h, samples, &busy)
	now, timeErr := processTime(pid)
	made, rate, otherErr := others.end()
	scale.Busy, scale.Rate, scale.Bystands = busy.Changes, rate, busy.Bystander
	scale.ChangeCPU = (now - used) / time.Duration(max(made, 1))
	return cmp.Or(err, timeErr, otherErr)
}

// otherChanges are changes of objects that no client asks for.
type otherChanges struct {
	stop  context.CancelFunc
	done  chan struct{}
	begin time.Time
	made  atomic.Int64
	err   error
}

// changeOthers gives Services of the second half other endpoints, in turns, as many a second
// as the API server takes, and not more than changesPerSecond.
func (k *kube) changeOthers(ctx context.Context) *otherChanges {
	ctx, stop := context.WithCancel(ctx)
	o := &otherChanges{stop: stop, done: make(chan struct{}), begin: time.Now()}
	first, services := k.freshAddresses(k.created), k.created/2
	go func() {
		defer close(o.done)
		err := parallel(ctx, 0, math.MaxInt, func(ctx context.Context, i int) error {
			time.Sleep(time.Until(o.begin.Add(time.Duration(i) * time.Second / changesPerSecond)))
			// A change that began ends.
			_, err := k.moveEndpoints(context.WithoutCancel(ctx), services+i%services, first+i%k.created*endpointsEach)
			o.made.Add(1)
			return err
		})
		if ctx.Err() == nil {
			o.err = err
		}
	}()
	return o
}

// end returns how many there were, and how many a second.
func (o *otherChanges) end() (made int64, rate float64, err error) {
	o.stop()
	<-o.done
	made = o.made.Load()
	return made, float64(made) / time.Since(o.begin).Seconds(), o.err
}

// printLarge prints a column for each scale.
func printLarge(all []largeScale, to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.DiscardEmptyColumns)
	line := func(name, budget string, cell func(largeScale) string) {
		cells := []string{name}
		for _, scale := range all {
			cells = append(cells, cell(scale))
		}
		fmt.Fprintln(w, strings.Join(append(cells, budget), "\t"))
	}
	line("Ingresses", "budget of the last", func(s largeScale) string { return thousands(s.Ingresses) })
	line("start to ready", "≤ 30 s", func(s largeScale) string { return fmt.Sprintf("%.1f s", s.Ready/1000) })
	line("requests to the API server until then", "", func(s largeScale) string { return fmt.Sprint(s.Requests) })
	line("controller, resident, most until ready", "≤ 1.2 GiB", func(s largeScale) string { return mebibytes(s.ControllerReady) })
	line("  ten seconds later", "", func(s largeScale) string { return mebibytes(s.ControllerLater) })
	line("  most until the end", "≤ 1.2 GiB", func(s largeScale) string { return mebibytes(s.ControllerPeak) })
	line("worker, private, before the first request", "", func(s largeScale) string { return mebibytes(s.WorkerIdle) })
	line(fmt.Sprintf("  with %s hosts served", thousands(cachedHosts)), "", func(s largeScale) string { return mebibytes(s.WorkerCached) })
	line("  with all hosts and certificates served", "the same", func(s largeScale) string { return mebibytes(s.WorkerUsed) })
	line("reloads", "≤ 2", func(s largeScale) string { return fmt.Sprint(s.Reloads) })
	changes := func(what string, of func(largeScale) []Change) {
		for i, change := range of(all[0]) {
			line(change.Name+what+", p50", "≤ 6 ms", func(s largeScale) string { return fmt.Sprintf("%.1f ms", of(s)[i].P50) })
			line("  p99", "≤ 30 ms", func(s largeScale) string { return fmt.Sprintf("%.1f ms", of(s)[i].P99) })
			line("  wrong answers", "0", func(s largeScale) string { return fmt.Sprint(of(s)[i].Wrong) })
		}
	}
	changes("", func(s largeScale) []Change { return s.Changes })
	line("requests lost on another host", "0", func(s largeScale) string { return s.Bystander.String() })
	line("changes of others a second", "", func(s largeScale) string { return fmt.Sprintf("%.0f", s.Rate) })
	line("controller CPU for each", "", func(s largeScale) string { return fmt.Sprintf("%.2f ms", milliseconds(s.ChangeCPU)) })
	changes(" meanwhile", func(s largeScale) []Change { return s.Busy })
	line("requests lost on another host meanwhile", "0", func(s largeScale) string { return s.Bystands.String() })
	for i, use := range all[0].Uses {
		line(use.name, "≤ 1 s", func(s largeScale) string { return s.Uses[i].String() })
	}
	return w.Flush()
}
