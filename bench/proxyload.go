package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A proxyLoad is a row: how proxies are put under load.
type proxyLoad struct {
	name string
	// connections, each with a request at a time.
	connections int
	// spread: 1,000 hosts in turn instead of one.
	spread           bool
	tls, http2, grpc bool
	// short: it belongs to the short form.
	short bool
}

// spreadHosts is how many hosts there are while proxies are put under load.
const spreadHosts = 1000

func proxyLoads() []proxyLoad {
	return []proxyLoad{
		{name: "HTTP/1.1, one host", connections: 1},
		{name: "HTTP/1.1, one host", connections: 32, short: true},
		{name: "HTTP/1.1, one host", connections: 512},
		{name: "HTTP/1.1, 1,000 hosts", connections: 1, spread: true},
		{name: "HTTP/1.1, 1,000 hosts", connections: 32, spread: true, short: true},
		{name: "HTTP/1.1, 1,000 hosts", connections: 512, spread: true},
		{name: "TLS, one host", connections: 1, tls: true},
		{name: "TLS, one host", connections: 32, tls: true, short: true},
		{name: "TLS, 1,000 hosts", connections: 32, spread: true, tls: true},
		{name: "HTTP/2, one host", connections: 1, http2: true},
		{name: "HTTP/2, one host", connections: 32, http2: true, short: true},
		{name: "gRPC, one host", connections: 1, grpc: true},
		{name: "gRPC, one host", connections: 32, grpc: true},
	}
}

func (l proxyLoad) String() string { return fmt.Sprintf("%s, %d", l.name, l.connections) }

// side is a proxy under the load. One host is the middle one.
func (l proxyLoad) side(p *runningProxy) *side {
	one := &side{
		name: p.kind.name, instance: instance{port: p.HTTP}, host: hostName(spreadHosts / 2),
		connections: l.connections, tls: l.tls, http2: l.http2 || l.grpc, grpc: l.grpc,
	}
	if l.tls || one.http2 {
		one.port = p.HTTPS
	}
	if l.grpc {
		one.host = p.GRPCHost
	}
	if l.spread {
		one.host, one.routing, one.step = "", exactRouting, 1
	}
	return one
}

// A proxyTurn is a proxy under one load, with a value for each round.
type proxyTurn struct {
	proxy *runningProxy
	load  proxyLoad
	// costs are microseconds of CPU for a request, and rates requests a second.
	costs, rates []float64
	delays       []delays
}

// delays are times until answers, in milliseconds.
type delays struct{ p50, p99, p999 float64 }

func (t *proxyTurn) String() string { return t.proxy.kind.name + ", " + t.load.String() }

// measure is that of a contender, for a time.
func (t *proxyTurn) measure(ctx context.Context, s *stage, during time.Duration) error {
	before, err := t.proxy.used()
	if err != nil {
		return err
	}
	requests, rate, times, err := s.loadProxy(ctx, t.load.side(t.proxy), during)
	for tries := 1; errors.Is(err, errNoAnswer) && tries < 3; tries++ {
		fmt.Fprintf(os.Stderr, "%v: no answer in %s, once more\n", t, during)
		if before, err = t.proxy.used(); err != nil {
			return err
		}
		requests, rate, times, err = s.loadProxy(ctx, t.load.side(t.proxy), during)
	}
	if err != nil {
		return fmt.Errorf("%v: %w", t, err)
	}
	after, err := t.proxy.used()
	if err != nil {
		return err
	}
	t.costs = append(t.costs, float64((after-before).Nanoseconds())/1000/float64(requests))
	t.rates, t.delays = append(t.rates, rate), append(t.delays, times)
	return nil
}

// delayScript has wrk print what parseWrk reads: its own report goes up to p99.
const delayScript = `
function done(summary, latency)
    io.write(string.format("delays %d %d %d\n", latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
end
`

// loadProxy puts a side under load once.
func (s *stage) loadProxy(ctx context.Context, one *side, during time.Duration) (requests int, rate float64, times delays, err error) {
	if !one.http2 {
		out, requests, err := s.runWrk(ctx, one, during, delayScript)
		if err != nil {
			return 0, 0, times, err
		}
		rate, times, err = parseWrk(string(out))
		return requests, rate, times, err
	}
	log := filepath.Join(s.dir, "h2load.log")
	out, requests, err := s.runH2load(ctx, one, during, "--log-file", log)
	if err != nil {
		return 0, 0, times, err
	}
	text, err := os.ReadFile(log)
	if err != nil {
		return 0, 0, times, err
	}
	rate, times, err = parseH2load(string(out), string(text))
	return requests, rate, times, err
}

// parseWrk reads requests a second and delays, of which wrk has microseconds.
func parseWrk(out string) (rate float64, times delays, err error) {
	found := regexp.MustCompile(`(?s)Requests/sec:\s+([\d.]+).*delays (\d+) (\d+) (\d+)`).FindStringSubmatch(out)
	if found == nil {
		return 0, times, fmt.Errorf("wrk does not report rate and delays: %s", out)
	}
	var values [4]float64
	for i, text := range found[1:] {
		if values[i], err = strconv.ParseFloat(text, 64); err != nil {
			return 0, times, fmt.Errorf("read what wrk reports: %w", err)
		}
	}
	const micro = 1000
	return values[0], delays{values[1] / micro, values[2] / micro, values[3] / micro}, nil
}

// parseH2load reads requests a second from its report, and delays from its log: a line has the
// start, the status and microseconds.
func parseH2load(out, log string) (rate float64, times delays, err error) {
	found := regexp.MustCompile(`finished in [^,]+, ([\d.]+) req/s`).FindStringSubmatch(out)
	if found == nil {
		return 0, times, fmt.Errorf("h2load does not report a rate: %s", out)
	}
	if rate, err = strconv.ParseFloat(found[1], 64); err != nil {
		return 0, times, fmt.Errorf("read what h2load reports: %w", err)
	}
	var all []float64
	for line := range strings.Lines(log) {
		words := strings.Fields(line)
		// Another status is that of a request under way at the end.
		if len(words) < 3 || words[1] != "200" {
			continue
		}
		micros, err := strconv.ParseFloat(words[2], 64)
		if err != nil {
			return 0, times, fmt.Errorf("read the log of h2load: %w", err)
		}
		all = append(all, micros/1000)
	}
	if len(all) == 0 {
		return 0, times, errors.New("the log of h2load has no answer")
	}
	return rate, delays{percentile(all, 50), percentile(all, 99), percentile(all, 99.9)}, nil
}
