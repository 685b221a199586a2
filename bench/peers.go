package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// A peerTask compares Headgate with what users pick instead. All proxies have the same work,
// take turns, and share one core.
type peerTask struct {
	*stage
	kinds []*proxyKind
	// missing are proxies that are not here, with the reason.
	missing []string
	// base is what all have in common.
	base  runningProxy
	size  size
	short bool
	to    io.Writer
}

// peerParts are what can be measured alone.
var peerParts = []string{"requests", "scales", "endpoints"}

// peerSize has fewer rounds than others, since there are many rows.
func peerSize(n size, short bool, rounds int) size {
	n.rounds = 3
	if short {
		n.rounds = 1
	}
	if rounds > 0 {
		n.rounds = rounds
	}
	return n
}

// measurePeers prints tables, of all parts or of one.
func measurePeers(ctx context.Context, s *stage, n size, only string, short bool, to io.Writer) error {
	if only != "" && !slices.Contains(peerParts, only) {
		return fmt.Errorf("invalid value %q of -only: must be one of %s", only, strings.Join(peerParts, ", "))
	}
	callee, end, err := startCallee()
	if err != nil {
		return err
	}
	defer end()
	t := &peerTask{stage: s, size: n, short: short, to: to}
	if err := t.prepareAll(ctx, callee); err != nil {
		return err
	}
	for _, name := range t.missing {
		fmt.Fprintf(to, "Not compared: %s.\n", name)
	}
	for i, part := range []func(context.Context) error{t.requests, t.scales, t.endpoints} {
		if only != "" && only != peerParts[i] {
			continue
		}
		if err := part(ctx); err != nil {
			return fmt.Errorf("compare %s of peers: %w", peerParts[i], err)
		}
	}
	return nil
}

// prepareAll finds the proxies, and what they have in common.
func (t *peerTask) prepareAll(ctx context.Context, callee int) error {
	// This process answers some of the requests. What it starts gets the same core, unless a command says another one.
	if out, err := exec.Command("taskset", "-acp", strconv.Itoa(loadCore), strconv.Itoa(os.Getpid())).CombinedOutput(); err != nil {
		return fmt.Errorf("pin the benchmark to a core: %w: %s", err, out)
	}
	for _, kind := range proxyKinds() {
		if kind.program != "" {
			if _, err := findProgram(kind.program); err != nil {
				t.missing = append(t.missing, fmt.Sprintf("%s (%v)", kind.name, err))
				continue
			}
		}
		t.kinds = append(t.kinds, kind)
	}
	pair, err := newCertificate("*.example.com")
	if err != nil {
		return err
	}
	at, err := t.place("settings")
	if err != nil {
		return err
	}
	if err := writeFolder(at.folder, 1, t.backend, false, exactRouting); err != nil {
		return err
	}
	first := len(t.processes)
	h, err := t.startHeadgate(ctx, at)
	if err != nil {
		return err
	}
	defer t.stopFrom(first)
	settings, err := t.copyTLS("settings", pair, h)
	if err != nil {
		return err
	}
	t.base = runningProxy{Endpoints: []string{local(t.backend)}, GRPCHost: grpcHost, GRPC: local(callee), TLS: settings, pair: pair}
	return nil
}

// start starts a proxy with the first n hosts.
func (t *peerTask) start(ctx context.Context, kind *proxyKind, n int) (*runningProxy, error) {
	p := t.base
	p.Hosts = peerHosts(n)
	return t.startProxy(ctx, kind, p)
}

// requests puts all proxies under all kinds of load, in turns.
func (t *peerTask) requests(ctx context.Context) error {
	defer t.stopFrom(len(t.processes))
	var running []*runningProxy
	for _, kind := range t.kinds {
		fmt.Fprintf(os.Stderr, "peers, start %s with %d hosts\n", kind.name, spreadHosts)
		p, err := t.start(ctx, kind, spreadHosts)
		if err != nil {
			return err
		}
		if err := p.touchAll(ctx); err != nil {
			return err
		}
		running = append(running, p)
	}
	var rows [][]*proxyTurn
	for _, load := range proxyLoads() {
		if t.short && !load.short {
			continue
		}
		var row []*proxyTurn
		for _, p := range running {
			row = append(row, &proxyTurn{proxy: p, load: load})
		}
		rows = append(rows, row)
	}
	// The first round is not counted: Lua and caches are warm after it.
	for round := range t.size.rounds + 1 {
		fmt.Fprintf(os.Stderr, "peers, round %d of %d\n", round, t.size.rounds)
		for _, turn := range slices.Concat(rows...) {
			if turn.load.grpc && turn.proxy.kind.noGRPC || round == 0 && turn.load.connections != connections {
				continue
			}
			if err := turn.measure(ctx, t.stage, t.size.load); err != nil {
				return err
			}
			if round == 0 {
				turn.costs, turn.rates, turn.delays = nil, nil, nil
			}
		}
	}
	t.printRequests(rows)
	return nil
}

// printRequests prints a table for CPU, one for the rate, and one for delays.
func (t *peerTask) printRequests(rows [][]*proxyTurn) {
	for _, table := range []struct {
		title string
		cell  func(turn, base *proxyTurn) string
	}{
		{"µs of CPU for a request (× that of NGINX by hand)", func(turn, base *proxyTurn) string {
			return fmt.Sprintf("%.1f (%.2f)", medianOf(turn.costs), medianOf(ratiosOf(turn.costs, base.costs)))
		}},
		{"requests a second", func(turn, _ *proxyTurn) string { return thousands(int(medianOf(turn.rates))) }},
		{"p50 / p99 / p99.9, ms", func(turn, _ *proxyTurn) string { return medianDelays(turn.delays) }},
	} {
		var lines [][]string
		for _, row := range rows {
			line := []string{row[0].load.String()}
			for _, turn := range row {
				cell := "–"
				if len(turn.costs) > 0 {
					cell = table.cell(turn, row[0])
				}
				line = append(line, cell)
			}
			lines = append(lines, line)
		}
		t.print(table.title, lines)
	}
}

// print prints a table with a column for each proxy.
func (t *peerTask) print(title string, lines [][]string) {
	header := []string{title}
	for _, kind := range t.kinds {
		header = append(header, kind.name)
	}
	fmt.Fprintln(t.to, "\n"+markdownTable(header, lines))
}

// markdownTable is a table as bench/README.md has them.
func markdownTable(header []string, lines [][]string) string {
	var out strings.Builder
	row := func(cells []string) { out.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row(header)
	row(slices.Repeat([]string{"---"}, len(header)))
	for _, line := range lines {
		row(line)
	}
	return out.String()
}

// medianDelays are those of each percentile.
func medianDelays(all []delays) string {
	var columns [3][]float64
	for _, one := range all {
		for i, value := range []float64{one.p50, one.p99, one.p999} {
			columns[i] = append(columns[i], value)
		}
	}
	var words []string
	for _, column := range columns {
		words = append(words, short(medianOf(column)))
	}
	return strings.Join(words, " / ")
}

// short has two digits or more.
func short(value float64) string {
	switch {
	case value < 1:
		return fmt.Sprintf("%.2f", value)
	case value < 100:
		return fmt.Sprintf("%.1f", value)
	}
	return thousands(int(value))
}

// thousands has a comma before each three digits.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
