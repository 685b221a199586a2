package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lossChanges are made while clients count what they lose.
	lossChanges = 20
	// busyClients send one request after the other meanwhile.
	busyClients = 16
)

// scales prints memory and the time until a new host is served, at several numbers of hosts, and
// what changes lose at one of them.
func (t *peerTask) scales(ctx context.Context) error {
	scales := t.size.scales
	if t.short {
		scales = scales[:2]
	}
	lines := map[string][]string{}
	var order []string
	cell := func(row, text string) {
		if lines[row] == nil {
			order = append(order, row)
			lines[row] = []string{row}
		}
		lines[row] = append(lines[row], text)
		// All take many minutes: what there is shows before the last one.
		fmt.Fprintf(os.Stderr, "  %s: %s\n", row, text)
	}
	for _, n := range scales {
		for _, kind := range t.kinds {
			fmt.Fprintf(os.Stderr, "peers, %s with %d hosts\n", kind.name, n)
			if err := t.scale(ctx, kind, n, cell); err != nil {
				return fmt.Errorf("%s with %d hosts: %w", kind.name, n, err)
			}
		}
	}
	var table [][]string
	for _, row := range order {
		table = append(table, lines[row])
	}
	t.print("hosts and changes", table)
	return nil
}

// scale measures one proxy with n hosts.
func (t *peerTask) scale(ctx context.Context, kind *proxyKind, n int, cell func(row, text string)) error {
	defer t.stopFrom(len(t.processes))
	begin := time.Now()
	p, err := t.start(ctx, kind, n)
	if err != nil {
		return err
	}
	ready := time.Since(begin)
	if err := p.touchAll(ctx); err != nil {
		return err
	}
	used, err := p.memory()
	if err != nil {
		return err
	}
	hosts := thousands(n) + " hosts"
	cell("memory, "+hosts, mebibytes(used))
	cell("start to the first answer, "+hosts+", s", fmt.Sprintf("%.1f", ready.Seconds()))
	if n < spreadHosts {
		return nil
	}
	changes := 5
	if t.short {
		changes = 2
	}
	times, err := t.addHosts(ctx, p, changes)
	if err != nil {
		return err
	}
	cell("a new host is served after, p50, "+hosts+", ms", short(medianOf(times)))
	if n != spreadHosts {
		return nil
	}
	lost, asked, times, err := t.loseBy(ctx, p)
	if err != nil {
		return err
	}
	cell(fmt.Sprintf("requests lost by %d new hosts, %s", len(times), hosts), fmt.Sprintf("%d of %s", lost, thousands(asked)))
	cell("a new host is served meanwhile after, p50, ms", short(medianOf(times)))
	return nil
}

// addHosts adds hosts one by one, and returns the milliseconds that each took.
func (t *peerTask) addHosts(ctx context.Context, p *runningProxy, n int) ([]float64, error) {
	var times []float64
	for range n {
		host := fmt.Sprintf("new-%05d.example.com", len(p.Hosts))
		elapsed, err := p.addHost(ctx, t.stage, host)
		if err != nil {
			return nil, err
		}
		times = append(times, milliseconds(elapsed))
		time.Sleep(quiet)
	}
	return times, nil
}

// loseBy adds hosts while clients ask for others, and returns how many requests they lost. A
// client keeps its connection, and sends no request twice.
func (t *peerTask) loseBy(ctx context.Context, p *runningProxy) (lost, asked int, times []float64, err error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	var all, failed atomic.Int64
	var group sync.WaitGroup
	for i := range busyClients {
		group.Go(func() {
			c := p.client()
			defer c.close()
			for j := i; working.Err() == nil; j += busyClients {
				// The last request is not to fail for the end of the measurement.
				got, err := c.get(ctx, hostName(j%spreadHosts))
				all.Add(1)
				if err != nil || got.status != http.StatusOK {
					failed.Add(1)
				}
			}
		})
	}
	n := lossChanges
	if t.short {
		n = 3
	}
	times, err = t.addHosts(ctx, p, n)
	stop()
	group.Wait()
	return int(failed.Load()), int(all.Load()), times, err
}
