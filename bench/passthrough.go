package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"text/tabwriter"
	"time"
)

// A passthroughSide is a Headgate with or without TLS passthrough.
type passthroughSide struct {
	side
	// pids are the controller and NGINX's worker.
	pids             []int
	shakes, requests meter
}

// measurePassthrough compares ordinary TLS connections without the flag for TLS passthrough,
// with it and without a host that uses it, and with such a host, in turns. It prints the
// medians.
func measurePassthrough(ctx context.Context, s *stage, n size, to io.Writer) error {
	pair, err := newCertificate("*.tls.example.com")
	if err != nil {
		return err
	}
	var sides []*passthroughSide
	for _, kind := range []struct {
		name string
		flag bool
		host string
	}{
		{"without the flag", false, ""}, {"with the flag", true, ""}, {"with a host that uses it", true, "through.tls.example.com"},
	} {
		one, err := s.startForPassthrough(ctx, fmt.Sprintf("passthrough-%d", len(sides)), pair, kind.flag, kind.host)
		if err != nil {
			return err
		}
		one.name = kind.name
		sides = append(sides, one)
	}
	if err := inRounds(ctx, n, sides); err != nil {
		return err
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "Headgate\tµs CPU/handshake\tratio\thandshakes/s\tratio\tµs CPU/request\tratio\trequests/s\tratio")
	base := sides[0]
	for _, one := range sides {
		fmt.Fprint(table, one.name)
		for _, column := range [][2][]float64{
			{one.shakes.costs, base.shakes.costs}, {one.shakes.rates, base.shakes.rates}, {one.requests.costs, base.requests.costs}, {one.requests.rates, base.requests.rates},
		} {
			fmt.Fprintf(table, "\t%.0f\t%.2f", medianOf(column[0]), medianOf(ratiosOf(column[0], column[1])))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

func (s *stage) startForPassthrough(ctx context.Context, name string, pair keyPair, flag bool, through string) (*passthroughSide, error) {
	at, err := s.place(name)
	if err != nil {
		return nil, err
	}
	if err := writeFolder(at.folder, 10, s.backend, false, exactRouting); err != nil {
		return nil, err
	}
	manifests, err := securedIngress(pair)
	if err != nil {
		return nil, err
	}
	if through != "" {
		manifests += "---\n" + ingress("through", through, "  annotations: {nginx.ingress.kubernetes.io/ssl-passthrough: \"true\"}\n")
	}
	if err := os.WriteFile(filepath.Join(at.folder, "tls.yaml"), []byte(manifests), 0o600); err != nil {
		return nil, fmt.Errorf("write the manifests: %w", err)
	}
	h, err := s.launch(ctx, at, loopback, func(args ...string) (*process, error) {
		if flag {
			args = append(args, "--enable-ssl-passthrough")
		}
		return s.start(at.name, s.headgate, append(args, "--manifests-dir", at.folder)...)
	})
	if err != nil {
		return nil, err
	}
	// Of equal threads, as a deployment with a limit of one CPU has them.
	if err := pin(h.process.cmd.Process.Pid, workerCore); err != nil {
		return nil, err
	}
	one := &passthroughSide{pids: []int{h.process.cmd.Process.Pid, h.worker}}
	one.side = side{instance: instance{port: h.https, worker: h.worker}, host: plainName, handshakes: true}
	return one, nil
}

func (p *passthroughSide) measure(ctx context.Context, during time.Duration) error {
	if err := p.shakes.take(p.used, func() (int, error) { return shakeHands(ctx, &p.side, during) }); err != nil {
		return err
	}
	return p.requests.take(p.used, func() (int, error) { return p.ask(ctx, during) })
}

// used is the CPU time of both processes.
func (p *passthroughSide) used() (sum time.Duration, err error) {
	for _, pid := range p.pids {
		one, err := cpuOfAll(pid)
		if err != nil {
			return 0, err
		}
		sum += one
	}
	return sum, nil
}

// ask sends requests over kept connections, and returns how many were answered.
func (p *passthroughSide) ask(ctx context.Context, during time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	counts, errs := make([]int, shakers), make([]error, shakers)
	var group sync.WaitGroup
	for i := range shakers {
		group.Go(func() { counts[i], errs[i] = p.askUntil(ctx) })
	}
	group.Wait()
	return answered(counts, errs)
}

// askUntil asks over one connection after the other: NGINX closes each after 1000 requests.
func (p *passthroughSide) askUntil(ctx context.Context) (n int, err error) {
	for ctx.Err() == nil && err == nil {
		var more int
		more, err = p.askOne(ctx)
		n += more
	}
	return n, err
}

func (p *passthroughSide) askOne(ctx context.Context) (n int, err error) {
	// The benchmark asks only for the host that it made.
	c, err := tls.Dial("tcp", local(p.port), &tls.Config{ServerName: p.host, InsecureSkipVerify: true})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	request := "GET / HTTP/1.1\r\nHost: " + p.host + "\r\n\r\n"
	for reader := bufio.NewReader(c); ctx.Err() == nil; {
		if _, err := io.WriteString(c, request); err != nil {
			return n, err
		}
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return n, err
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return n, err
		}
		if n++; response.Close {
			break
		}
	}
	return n, nil
}
