package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
)

// Instructions are those of user code that a worker takes for a request, by kind
// of request. They hardly depend on the machine and its load.
type Instructions struct {
	// NGINX is the version by which they were counted.
	NGINX string `json:"nginx"`
	// ByHand are those of the NGINX by hand for a plain request, counted in the
	// same run. Ratios to it are compared: an update of a library changes both.
	ByHand float64            `json:"by_hand"`
	Kinds  map[string]float64 `json:"instructions"`
	// Hands are those of the NGINX by hand for requests that meet their backends in
	// the same way, by the kind that has one: such kinds are compared with these. Those of
	// requests that pass the same guard are only printed beside it.
	Hands map[string]float64 `json:"by_hand_with"`
}

// ratio is what a kind takes by what the same takes by hand.
func (i Instructions) ratio(kind requestKind) float64 { return i.Kinds[kind.name] / i.base(kind) }

func (i Instructions) base(kind requestKind) float64 {
	if kind.hand != "" {
		return i.Hands[kind.hand]
	}
	return i.ByHand
}

const (
	// maxDrift is by how much a ratio may differ from the table's, as a ratio. What LuaJIT
	// compiles differs from process to process: counts of plain requests differ by up to 6 %,
	// those of requests with features by up to 17 %. Beyond these bounds, code changed.
	maxDrift, maxFeatureDrift = 0.06, 0.25
	// Of each kind: requests before it counts, until all is compiled, and those
	// that are counted, several cycles of Lua's garbage collection.
	warmRequests, countedRequests = 2000, 3000
	// inTurn is the kind that asks for turnedHosts hosts in turn.
	inTurn      = "1,000 hosts in turn"
	turnedHosts = 1000
)

// A requestKind is a kind of request that is counted.
type requestKind struct {
	name, path string
	host       func(i int) string
	headers    []string
	// tls and http2, which is over TLS: how the connection is made.
	tls, http2 bool
	// feature: the request has more than routing, see maxFeatureDrift.
	feature bool
	// hand is the kind of Hands that it is compared with, empty for ByHand.
	hand string
	// grpc sends unary calls, over HTTP/2.
	grpc bool
	// dear: a tenth of the requests is counted.
	dear bool
	// digest has each request signed.
	digest bool
}

func (k requestKind) maxDrift() float64 {
	if k.feature {
		return maxFeatureDrift
	}
	return maxDrift
}

// countedFeatures are the feature rows that are counted, by the kind's name.
var countedFeatures = []struct{ kind, row string }{
	{"cors", "cors, with an Origin"},
	{"canary", "canary by a header"},
	{"rewrite", "rewrite-target with a group"},
}

func always(host string) func(int) string { return func(int) string { return host } }

func ownKinds() []requestKind {
	kinds := []requestKind{
		{name: "one host", host: always(hostName(5))},
		{name: inTurn, host: func(i int) string { return hostName(i % turnedHosts) }},
		{name: "a profile of its own", host: always(profileHost)},
		{name: "a host of regular expressions", host: always(fmt.Sprintf(patternRouting.asked, 0)), path: patternRouting.path, feature: true},
		{name: "one host, over TLS", host: always(hostName(5)), tls: true},
		{name: "one host, over HTTP/2", host: always(hostName(5)), tls: true, http2: true},
	}
	for _, one := range countedFeatures {
		i := slices.IndexFunc(featureRows, func(r featureRow) bool { return r.name == one.row })
		kinds = append(kinds, requestKind{name: one.kind, host: always(featureHost(i)), headers: featureRows[i].headers, feature: true})
	}
	return kinds
}

// An instructionTask says what is done with the instructions of requests.
type instructionTask struct {
	// table is the file that they are compared with, or that is written if update
	// is set.
	table  string
	update bool
	// profiles is a directory for callgrind's output by kind, empty for none.
	profiles string
	// short leaves out what takes minutes: the kinds that differ by the backend, and guards by
	// hand.
	short bool
	// only is the part that is counted, one of countedParts; all if it is empty.
	only string
	// metrics has requests counted.
	metrics bool
}

// countedParts are the parts of the kinds.
var countedParts = []string{"features", "tracing", "log", "guards", "backends"}

// logging are the kinds of the access log. Alone, they always show what it adds.
func (t instructionTask) logging() []requestKind { return loggingKinds(t.short && t.only == "") }

// counts reports whether a part is counted.
func (t instructionTask) counts(part string) bool {
	if t.only != "" {
		return t.only == part
	}
	return !t.short || part != "backends"
}

func (t instructionTask) kinds() (kinds []requestKind) {
	if t.counts("features") {
		kinds = append(kinds, ownKinds()...)
	}
	if t.counts("tracing") {
		kinds = append(kinds, tracingKinds()...)
	}
	if t.counts("log") {
		kinds = append(kinds, t.logging()...)
	}
	if t.counts("guards") {
		kinds = append(kinds, guardKinds()...)
	}
	if t.counts("backends") {
		kinds = append(kinds, backendKinds()...)
	}
	return kinds
}

// attempts is how often all kinds are counted: for the table, of which each count is the
// median; and before a ratio that differs fails, since a new process may compile otherwise.
const attempts = 3

func (t instructionTask) run(ctx context.Context, s *stage) error {
	var table Instructions
	if !t.update || t.only != "" {
		text, err := os.ReadFile(t.table)
		if err == nil {
			err = json.Unmarshal(text, &table)
		}
		if err != nil {
			return fmt.Errorf("read the table of instructions: %w", err)
		}
	}
	var all []Instructions
	for i := range attempts {
		counted, err := s.countInstructions(ctx, i, t)
		if err != nil {
			return fmt.Errorf("count instructions: %w", err)
		}
		if t.metrics {
			table.NGINX = "without metrics"
			return table.compare(counted, t.kinds(), os.Stdout)
		}
		all = append(all, counted)
		// What is a difference of counts needs all of them.
		if !t.update && t.only != "log" && table.compare(nearest(table, all, t.kinds()), t.kinds(), io.Discard) == nil {
			break
		}
	}
	printLogging(all, os.Stdout)
	if t.update {
		if t.only != "" {
			table = table.with(medians(all))
		} else {
			table = medians(all)
		}
		text, err := json.MarshalIndent(table, "", "  ")
		if err != nil {
			return err
		}
		return os.WriteFile(t.table, append(text, '\n'), 0o644)
	}
	return table.compare(nearest(table, all, t.kinds()), t.kinds(), os.Stdout)
}

// with has the counts of a part in place of its own.
func (i Instructions) with(part Instructions) Instructions {
	i.Kinds, i.Hands = maps.Clone(i.Kinds), maps.Clone(i.Hands)
	maps.Copy(i.Kinds, part.Kinds)
	maps.Copy(i.Hands, part.Hands)
	return i
}

// nearest has of each kind the count that is nearest to the table, as if it had been counted
// beside the first one by hand.
func nearest(table Instructions, all []Instructions, kinds []requestKind) Instructions {
	result := all[0]
	result.Kinds = map[string]float64{}
	for _, kind := range kinds {
		want, best := table.ratio(kind), math.NaN()
		for _, one := range all {
			if ratio := one.ratio(kind); math.IsNaN(best) || math.Abs(ratio-want) < math.Abs(best-want) {
				best = ratio
			}
		}
		result.Kinds[kind.name] = best * result.base(kind)
	}
	return result
}

func medians(all []Instructions) Instructions {
	result := Instructions{NGINX: all[0].NGINX, Kinds: map[string]float64{}, Hands: map[string]float64{}}
	median := func(of func(Instructions) float64) float64 {
		var values []float64
		for _, one := range all {
			values = append(values, of(one))
		}
		return math.Round(medianOf(values))
	}
	result.ByHand = median(func(i Instructions) float64 { return i.ByHand })
	for kind := range all[0].Kinds {
		result.Kinds[kind] = median(func(i Instructions) float64 { return i.Kinds[kind] })
	}
	for kind := range all[0].Hands {
		result.Hands[kind] = median(func(i Instructions) float64 { return i.Hands[kind] })
	}
	return result
}

// compare prints both and fails if a ratio is not that of the table. Counts of
// another NGINX are only printed.
func (t Instructions) compare(counted Instructions, kinds []requestKind, out io.Writer) error {
	var failed []error
	fmt.Fprintf(out, "%-36s %8.0f in the table, %8.0f counted\n", "by hand", t.ByHand, counted.ByHand)
	for _, kind := range kinds {
		was, is := t.ratio(kind), counted.ratio(kind)
		drift := is/was - 1
		fmt.Fprintf(out, "%-36s %8.0f in the table, %8.0f counted; by hand × %.3f, × %.3f (%+.1f %%)", kind.name, t.Kinds[kind.name], counted.Kinds[kind.name], was, is, 100*drift)
		if same := counted.Hands[kind.name]; kind.hand == "" && same > 0 {
			fmt.Fprintf(out, "; the same guard by hand: %.0f, × %.3f", same, counted.Kinds[kind.name]/same)
		}
		fmt.Fprintln(out)
		if t.NGINX == counted.NGINX && !(drift <= kind.maxDrift() && drift >= -kind.maxDrift()) {
			failed = append(failed, fmt.Errorf("%s: by hand × %.3f instructions, and × %.3f in bench/instructions.json; if that is right: go run ./bench -instructions -update",
				kind.name, is, was))
		}
	}
	return errors.Join(failed...)
}

// countInstructions counts all kinds of a task, in processes of its own for each attempt.
func (s *stage) countInstructions(ctx context.Context, attempt int, t instructionTask) (Instructions, error) {
	counted := Instructions{NGINX: s.nginx.Version, Kinds: map[string]float64{}, Hands: map[string]float64{}}
	if _, err := exec.LookPath("valgrind"); err != nil {
		return counted, fmt.Errorf("%w; on Debian and Ubuntu: apt-get install valgrind", err)
	}
	hand, end, err := s.startCountedByHand(ctx, fmt.Sprint("counted-by-hand-", attempt), plainNginx{Backend: s.backend, KeepsConnections: true})
	if err != nil {
		return counted, err
	}
	defer end()
	hand.profiles = t.profiles
	if counted.ByHand, err = hand.count(requestKind{name: "by hand", host: func(int) string { return hostName(5) }}); err != nil {
		return counted, fmt.Errorf("by hand: %w", err)
	}
	for _, part := range []struct {
		name  string
		count func() error
	}{
		{"features", func() error {
			return s.countOwn(ctx, fmt.Sprint("counted-", attempt), t.profiles, counted.Kinds)
		}},
		{"tracing", func() error {
			return s.countTracing(ctx, fmt.Sprint("counted-traced-", attempt), t.profiles, counted.Kinds)
		}},
		{"log", func() error {
			return s.countLogging(ctx, fmt.Sprint("counted-log-", attempt), t.profiles, t.logging(), counted)
		}},
		{"guards", func() error { return s.countGuards(ctx, fmt.Sprint("counted-guards-", attempt), t, counted) }},
		{"backends", func() error {
			return s.countBackends(ctx, fmt.Sprint("counted-backends-", attempt), t.profiles, counted)
		}},
	} {
		if t.counts(part.name) {
			if err := part.count(); err != nil {
				return counted, err
			}
		}
	}
	return counted, nil
}

// countOwn counts what differs by routing and features.
func (s *stage) countOwn(ctx context.Context, name, profiles string, counts map[string]float64) error {
	auth, endAuth, err := startAuthService()
	if err != nil {
		return err
	}
	defer endAuth()
	at, err := s.place(name)
	if err != nil {
		return err
	}
	err = errors.Join(
		writeFolder(at.folder, turnedHosts, s.backend, false, exactRouting),
		writeFolder(at.folder, 1, s.backend, false, exactRouting, wildcardRouting, patternRouting),
		writeFeatures(at.folder, auth, s.backend, keepConnections))
	if err != nil {
		return err
	}
	c, stop, err := s.startCounter(ctx, at)
	if err != nil {
		return err
	}
	defer stop()
	// Once every host is decoded and what that left is collected, the first kind costs no
	// more than the others.
	kinds := ownKinds()
	for range 2 {
		if _, err := c.count(kinds[slices.IndexFunc(kinds, func(k requestKind) bool { return k.name == inTurn })]); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
	}
	c.profiles = profiles
	return c.countAll(kinds, counts)
}

func (c *counter) countAll(kinds []requestKind, counts map[string]float64) error {
	for _, kind := range kinds {
		count, err := c.count(kind)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		counts[kind.name] = float64(int(count))
		fmt.Fprintf(os.Stderr, "%s: %.0f\n", kind.name, count)
	}
	return nil
}
