package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// hosts that Headgate serves while worker CPU is measured; spread.lua knows
// the number too.
const hosts = 10000

// middle is the host that most rows ask for.
const middle = "h-05000.example.com"

// A CPURow compares the CPU that two NGINX workers spend on a proxied request,
// or on a TLS handshake.
type CPURow struct {
	Name string `json:"name"`
	// Base and Cost are medians over all rounds, in microseconds.
	Base float64 `json:"base_us"`
	Cost float64 `json:"cost_us"`
	// Ratio is the median of the ratios in each round, and half of the rounds had a ratio between Low and High.
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Budget is the maximum of Ratio, 0 for none.
	Budget float64 `json:"budget,omitempty"`
	// More says that Cost is what is spent more than without something: the median of the
	// differences in each round. BaseMore says so of Base; Low and High are then by Base too.
	More     bool `json:"more,omitempty"`
	BaseMore bool `json:"base_more,omitempty"`
}

// A comparison is a row to be.
type comparison struct {
	name       string
	base, side *side
	budget     float64
}

// measureCPU measures proxied requests: all rows, or those of a part, one of cpuParts.
func measureCPU(ctx context.Context, s *stage, n size, only string, short bool) ([]CPURow, error) {
	defer s.stopFrom(len(s.processes))
	rows, err := prepareCPU(ctx, s, only, short)
	if err != nil {
		return nil, err
	}
	return s.takeTurns(ctx, "worker CPU", rows, n)
}

// takeTurns lets all sides of the rows take their turns, round by round.
func (s *stage) takeTurns(ctx context.Context, what string, rows []comparison, n size) ([]CPURow, error) {
	sides := distinctSides(rows)
	for _, one := range sides {
		if err := pin(one.worker, workerCore); err != nil {
			return nil, err
		}
		// Lua is compiled and all connections exist when it counts.
		if _, err := s.take(ctx, one, time.Second); err != nil {
			return nil, err
		}
	}
	for round := range n.rounds {
		fmt.Fprintf(os.Stderr, "%s, round %d of %d\n", what, round+1, n.rounds)
		for _, one := range sides {
			cost, err := s.take(ctx, one, n.load)
			if err != nil {
				return nil, err
			}
			one.costs = append(one.costs, cost)
		}
	}
	var results []CPURow
	for _, row := range rows {
		results = append(results, row.result())
	}
	return results, nil
}

// cpuParts are parts of the rows of worker CPU that can be measured alone.
var cpuParts = []string{"log", "metrics", "parts", "tracing"}

// cpuSides are what the rows of worker CPU have in common.
type cpuSides struct {
	at    place
	quiet *headgate
	// One host, and 1,000 in turn, by hand and of Headgate.
	static, product, staticSpread, productSpread *side
}

// prepareCPU starts everything that is compared. The short form of all compares
// Headgate only, and not what it is made of.
func prepareCPU(ctx context.Context, s *stage, only string, short bool) (rows []comparison, err error) {
	both, err := s.startBoth(ctx)
	if err != nil {
		return nil, err
	}
	for _, part := range []struct {
		name    string
		long    bool
		compare func(context.Context, cpuSides) ([]comparison, error)
	}{
		{"cpu", false, compareProxying},
		{"metrics", false, s.compareMetrics},
		{"log", true, s.compareLogging},
		{"cpu", true, s.compareSecure},
		{"cpu", true, s.compareRouting},
		{"parts", true, s.compareParts},
		{"tracing", true, s.compareTracing},
	} {
		if alone := slices.Contains(cpuParts, only); alone && part.name != only || !alone && part.long && short {
			continue
		}
		more, err := part.compare(ctx, both)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// startBoth starts the NGINX by hand and a Headgate that neither counts nor logs nor traces.
func (s *stage) startBoth(ctx context.Context) (both cpuSides, err error) {
	static, err := s.startStatic(ctx, "static", false)
	if err != nil {
		return both, err
	}
	if both.at, both.quiet, err = s.startWithHosts(ctx, "headgate", false, exactRouting); err != nil {
		return both, err
	}
	both.static = &side{name: "static", instance: static, host: middle}
	both.product = &side{name: "headgate", instance: both.quiet.instance, host: middle}
	both.staticSpread = &side{name: "static, spread", instance: static, routing: exactRouting}
	both.productSpread = &side{name: "headgate, spread", instance: both.quiet.instance, routing: exactRouting}
	return both, both.quiet.checkPeer(s)
}

func compareProxying(_ context.Context, both cpuSides) ([]comparison, error) {
	return []comparison{
		{"default profile, one host", both.static, both.product, 1.05},
		{"default profile, 1,000 hosts in turn", both.staticSpread, both.productSpread, 1.12},
		{"a profile of its own", both.static, &side{name: "headgate, profile", instance: both.quiet.instance, host: profileHost}, 1.15},
	}, nil
}

// compareMetrics compares what request metrics add with requests by hand.
func (s *stage) compareMetrics(ctx context.Context, both cpuSides) ([]comparison, error) {
	defer func(before []string) { s.arguments = before }(s.arguments)
	s.arguments = slices.Concat(s.arguments, []string{"--enable-metrics"})
	_, h, err := s.startWithHosts(ctx, "headgate-metrics", false, exactRouting)
	if err != nil {
		return nil, err
	}
	one := &side{name: "headgate, metrics", instance: h.instance, host: middle}
	spread := &side{name: "headgate, metrics, spread", instance: h.instance, routing: exactRouting}
	return []comparison{
		{"metrics: what they add, one host", both.static, beyond(one, both.product), maxMetrics},
		{"metrics: what they add, 1,000 hosts in turn", both.staticSpread, beyond(spread, both.productSpread), maxMetrics},
	}, nil
}

// compareSecure compares requests over connections that stay: with TLS, and with HTTP/2
// over TLS.
func (s *stage) compareSecure(ctx context.Context, _ cpuSides) ([]comparison, error) {
	at, err := s.place("headgate-secure")
	if err != nil {
		return nil, err
	}
	pair, err := newCertificate(middle)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		writeFolder(at.folder, hosts, s.backend, false, exactRouting),
		os.WriteFile(filepath.Join(at.folder, "options.yaml"), []byte(configMap(false, keepConnections)), 0o644))
	if err != nil {
		return nil, err
	}
	h, err := s.startHeadgate(ctx, at)
	if err != nil {
		return nil, err
	}
	const name = "static-secure"
	settings, err := s.copyTLS(name, pair, h)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	values := plainNginx{Backend: s.backend, KeepsConnections: true, TLS: settings, TLSPort: ports[0]}
	pid, _, err := s.startPlain(ctx, name, staticTemplate, values)
	if err != nil {
		return nil, fmt.Errorf("start the static NGINX for TLS: %w", err)
	}
	static, ours := instance{port: ports[0], worker: pid}, instance{port: h.https, worker: h.worker}
	return []comparison{
		{
			"over TLS, one host", &side{name: "static, over TLS", instance: static, host: middle, tls: true},
			&side{name: "headgate, over TLS", instance: ours, host: middle, tls: true}, 0,
		},
		{
			"over HTTP/2, one host", &side{name: "static, over HTTP/2", instance: static, host: middle, http2: true},
			&side{name: "headgate, over HTTP/2", instance: ours, host: middle, http2: true}, 0,
		},
	}, nil
}

// compareParts adds Headgate's Lua phases one by one.
func (s *stage) compareParts(ctx context.Context, both cpuSides) ([]comparison, error) {
	sides := map[string]*side{}
	for _, part := range copiedParts {
		copied, err := s.startCopy(ctx, both.quiet, both.at, part)
		if err != nil {
			return nil, err
		}
		sides[part.name] = &side{name: part.name, instance: copied, host: middle}
	}
	none, empty, route := sides["copy-none"], sides["copy-empty"], sides["copy-route"]
	return []comparison{
		{"part: nginx.conf without Lua", both.static, none, 0},
		{"part: empty phases of Lua", both.static, empty, 0},
		{"part: and routing", empty, route, 0},
		{"part: and balancing", route, both.product, 0},
	}, nil
}

// compareRouting compares 10,000 wildcard hosts and 10,000 hosts of regular
// expressions with 10,000 plain ones, all beside each other in one Headgate.
func (s *stage) compareRouting(ctx context.Context, _ cpuSides) ([]comparison, error) {
	_, h, err := s.startWithHosts(ctx, "headgate-routing", false, exactRouting, wildcardRouting, patternRouting)
	if err != nil {
		return nil, err
	}
	one := func(name string, r routing) *side {
		return &side{name: name, instance: h.instance, host: fmt.Sprintf(r.asked, hosts/2), routing: r}
	}
	spread := func(name string, r routing) *side { return &side{name: name, instance: h.instance, routing: r} }
	plain, plainSpread := one("exact", exactRouting), spread("exact, spread", exactRouting)
	return []comparison{
		{"routing: a wildcard host", plain, one("wildcard", wildcardRouting), 1.3},
		{"routing: 1,000 wildcard hosts in turn", plainSpread, spread("wildcard, spread", wildcardRouting), 1.3},
		{"routing: a host of regular expressions", plain, one("patterns", patternRouting), 1.3},
		{"routing: 1,000 hosts of regular expressions in turn", plainSpread, spread("patterns, spread", patternRouting), 1.3},
	}, nil
}

// startWithHosts starts Headgate on a new folder with 10,000 hosts of each
// routing.
func (s *stage) startWithHosts(ctx context.Context, name string, accessLog bool, routings ...routing) (place, *headgate, error) {
	at, err := s.place(name)
	if err != nil {
		return place{}, nil, err
	}
	if err := writeFolder(at.folder, hosts, s.backend, accessLog, routings...); err != nil {
		return place{}, nil, err
	}
	h, err := s.startHeadgate(ctx, at)
	return at, h, err
}

// checkPeer makes sure that the static NGINX does the same work.
func (h *headgate) checkPeer(s *stage) error {
	ours, err := h.conf()
	if err != nil {
		return err
	}
	theirs, err := os.ReadFile(s.dir + "/static/nginx.conf")
	if err != nil {
		return err
	}
	return checkSameWork(string(theirs), ours)
}

func distinctSides(rows []comparison) []*side {
	var sides []*side
	seen := map[*side]bool{}
	for _, row := range rows {
		for _, one := range slices.Concat(row.base.loaded(), row.side.loaded()) {
			if !seen[one] {
				seen[one] = true
				sides = append(sides, one)
			}
		}
	}
	return sides
}

func (c comparison) result() CPURow {
	base, costs := c.base.perRound(), c.side.perRound()
	row := CPURow{
		Name: c.name, Base: medianOf(base), Cost: medianOf(costs), Budget: c.budget,
		More: c.side.with != nil, BaseMore: c.base.with != nil,
	}
	if row.BaseMore {
		// That of a round may be next to nothing.
		base = slices.Repeat([]float64{row.Base}, len(base))
	}
	ratios := ratiosOf(costs, base)
	row.Ratio, row.Low, row.High = medianOf(ratios), percentile(ratios, 25), percentile(ratios, 75)
	return row
}
