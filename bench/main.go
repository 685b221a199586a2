// Command bench measures Headgate beside a hand-written static NGINX, prints a
// table and writes bench/results.json.
//
//	go run ./bench          what bench/README.md shows, about half an hour
//	go run ./bench -only log|metrics|parts|tracing   what each adds to a request
//	go run ./bench -only series|start   what 100,000 series take; starts with what operators see
//	go run ./bench -short   about a minute, fails when a loose bound is broken
//	go run ./bench -against OTHER/headgate   the worker CPU of two builds
//	go run ./bench -streams   TCP and UDP services beside NGINX's stream module
//	go run ./bench -http3         HTTP/3 beside HTTP/2; $HEADGATE_NGINX must name an NGINX that has it
//	go run ./bench -memory        what client certificates and ModSecurity take in NGINX
//	go run ./bench -passthrough   what TLS passthrough costs ordinary TLS connections
//	go run ./bench -peers [-short] [-only requests|scales|endpoints]   beside other proxies; bench/peers/install gets them
//	go run ./bench -large [-short]   on a real API server with 1,000, 10,000 and, in its long form, 100,000 Ingresses
//	go run ./bench -edges [-only 100] [-short]   a control of 10,000 Ingresses with up to 500 edges
//	go run ./bench -attacks [-only A5] [-against OTHER/headgate]   what attacks cost others
//
// It needs bin/headgate, nginx with its Lua module, wrk and taskset, two cores
// or more, and uses loopback and a directory of its own only. The long form
// also needs root, for the cluster of test/cluster, in namespaces of its own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/headgate/headgate/internal/nginx"
)

// A size says how much is measured.
type size struct {
	// rounds in which all sides take their turn, each for load.
	rounds int
	load   time.Duration
	// scales are the numbers of Ingresses at which propagation is measured,
	// with samples changes each.
	scales  []int
	samples int
}

func sizeOf(short bool) size {
	scales := []int{10, 1000, 10000}
	if short {
		return size{rounds: 5, load: time.Second, scales: scales, samples: 30}
	}
	return size{rounds: 25, load: time.Second, scales: scales, samples: 200}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	short := flags.Bool("short", false, "measure little, and fail when a loose bound is broken")
	only := flags.String("only", "", "measure only cpu, of it log, metrics, parts or tracing, features, guards, backends, handshake, propagation, start, series or cluster; without -short the results keep the rest")
	headgate := flags.String("headgate", "bin/headgate", "program to measure")
	against := flags.String("against", "", "another build of Headgate: compare the worker CPU of both and nothing else, and write no results")
	instructions := flags.Bool("instructions", false, "count the instructions of requests of several kinds, compare them with bench/instructions.json, and do nothing else; with -short, without what takes minutes; with -only, those of features, tracing, log, guards or backends")
	attacked := flags.Bool("attacks", false, "measure what the attacks of docs/security.md cost others, with -only those of a finding, and with -against on another build first; write no results")
	streams := flags.Bool("streams", false, "compare TCP and UDP services with NGINX's stream module, and do nothing else")
	besides := flags.Bool("peers", false, "compare Headgate with other proxies, which bench/peers/install gets, and do nothing else; with -only, requests, scales or endpoints")
	large := flags.Bool("large", false, "measure starts, memory and changes on a real API server with up to 100,000 Ingresses, and do nothing else; with -short, up to 10,000")
	edges := flags.Bool("edges", false, "measure a control with up to 500 edges that are simulated, and the start of a real one, and do nothing else; with -only, one number of edges, or starts; with -short, 1,000 Ingresses and up to 10 edges, within loose bounds")
	metrics := flags.Bool("metrics", false, "with -instructions or -against: with --enable-metrics; the counts are only printed")
	passthrough := flags.Bool("passthrough", false, "measure what TLS passthrough costs ordinary TLS connections, and do nothing else")
	memory := flags.Bool("memory", false, "measure the memory of NGINX with client certificates and ModSecurity, and do nothing else")
	http3 := flags.Bool("http3", false, "compare requests over HTTP/3 with those over HTTP/2, and do nothing else")
	update := flags.Bool("update", false, "with -instructions: write the file instead")
	profiles := flags.String("profiles", "", "with -instructions: an existing directory for callgrind's output of each kind")
	rounds := flags.Int("rounds", 0, "rounds of each comparison instead of the usual number")
	results := flags.String("results", "bench/results.json", "file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !*attacked && !*besides && !*edges {
		if err := checkPart(*only, *short, *instructions); err != nil {
			return err
		}
	}
	s, err := newStage(ctx, *headgate)
	if err != nil {
		return err
	}
	defer s.close()
	if *metrics {
		s.arguments = []string{"--enable-metrics"}
	}
	if *instructions {
		return instructionTask{table: "bench/instructions.json", update: *update, profiles: *profiles, short: *short && !*update, only: *only, metrics: *metrics}.run(ctx, s)
	}
	n := sizeOf(*short)
	if *rounds > 0 {
		n.rounds = *rounds
	}
	for _, alone := range []struct {
		wanted  bool
		measure func() error
	}{
		{*streams, func() error { return measureStreams(ctx, s, n, os.Stdout) }},
		{*besides, func() error { return measurePeers(ctx, s, peerSize(n, *short, *rounds), *only, *short, os.Stdout) }},
		{*large, func() error { return measureLarge(ctx, s, n, *short, os.Stdout) }},
		{*edges, func() error { return measureEdges(ctx, s, *only, *short, os.Stdout) }},
		{*passthrough, func() error { return measurePassthrough(ctx, s, n, os.Stdout) }},
		{*memory, func() error { return measureMemory(ctx, s, os.Stdout) }},
		{*http3, func() error { return measureHTTP3(ctx, s, n, os.Stdout) }},
		{*attacked, func() error { return measureAttacks(ctx, s, *only, *against, os.Stdout) }},
		{*against != "", func() error { return compareBuilds(ctx, s, *against, n) }},
	} {
		if alone.wanted {
			return alone.measure()
		}
	}
	r := Results{Machine: describeMachine(s.nginx), Time: time.Now().UTC().Truncate(time.Second), Short: *short}
	if err := r.measure(ctx, s, n, *only); err != nil {
		return err
	}
	r.print(os.Stdout)
	if *only != "" && !*short {
		if err := r.keep(*results); err != nil {
			return err
		}
	}
	if err := r.write(*results); err != nil {
		return err
	}
	if *short {
		return r.check()
	}
	return nil
}

// checkPart rejects parts that can't be measured.
func checkPart(only string, short, instructions bool) error {
	known := slices.Clone(cpuParts)
	for _, part := range parts {
		if !short || part.name != "cluster" {
			known = append(known, part.name)
		}
	}
	if instructions {
		known = countedParts
	}
	if only != "" && !slices.Contains(known, only) {
		return fmt.Errorf("invalid value %q of -only: must be one of %s", only, strings.Join(known, ", "))
	}
	return nil
}

// compareBuilds prints how this build compares with another one.
func compareBuilds(ctx context.Context, s *stage, other string, n size) error {
	rows, err := measureAgainst(ctx, s, n, other)
	if err != nil {
		return fmt.Errorf("compare two builds: %w", err)
	}
	Results{Machine: describeMachine(s.nginx), CPU: rows}.print(os.Stdout)
	return nil
}

// parts are what is measured, in this order.
var parts = []struct {
	name string
	// short: it belongs to the short form.
	short   bool
	measure func(ctx context.Context, r *Results, s *stage, n size, only string) error
}{
	{"cpu", true, func(ctx context.Context, r *Results, s *stage, n size, only string) (err error) {
		r.CPU, err = measureCPU(ctx, s, n, only, r.Short)
		return err
	}},
	{"features", false, func(ctx context.Context, r *Results, s *stage, n size, _ string) (err error) {
		r.Features, err = measureFeatures(ctx, s, n)
		return err
	}},
	{"guards", false, func(ctx context.Context, r *Results, s *stage, n size, _ string) (err error) {
		r.Guards, err = measureGuards(ctx, s, n)
		return err
	}},
	{"backends", false, func(ctx context.Context, r *Results, s *stage, n size, _ string) (err error) {
		r.Backends, err = measureBackends(ctx, s, n)
		return err
	}},
	{"handshake", true, func(ctx context.Context, r *Results, s *stage, n size, _ string) (err error) {
		r.Handshakes, err = measureHandshakes(ctx, s, n, r.Short)
		return err
	}},
	{"propagation", true, func(ctx context.Context, r *Results, s *stage, n size, _ string) (err error) {
		r.Scales, err = measureScales(ctx, s, n)
		return err
	}},
	{"start", false, func(ctx context.Context, r *Results, s *stage, n size, _ string) (err error) {
		r.Starts, err = measureStarts(ctx, s, n)
		return err
	}},
	{"series", false, func(ctx context.Context, r *Results, s *stage, n size, _ string) (err error) {
		r.Series, err = measureSeries(ctx, s)
		return err
	}},
	{"cluster", false, func(ctx context.Context, r *Results, s *stage, n size, _ string) (err error) {
		r.Cluster, err = measureCluster(ctx, s, n)
		return err
	}},
}

// measure measures everything, or one part only. The short form leaves out what takes long.
func (r *Results) measure(ctx context.Context, s *stage, n size, only string) error {
	wanted := only
	if slices.Contains(cpuParts, only) {
		wanted = "cpu"
	}
	for _, part := range parts {
		if wanted != part.name && (wanted != "" || r.Short && !part.short) {
			continue
		}
		if err := part.measure(ctx, r, s, n, only); err != nil {
			return fmt.Errorf("measure %s: %w", part.name, err)
		}
	}
	return nil
}

// keep takes from a file of results what was not measured this time.
func (r *Results) keep(file string) error {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var old Results
	if err == nil {
		err = json.Unmarshal(text, &old)
	}
	if err != nil {
		return fmt.Errorf("read the earlier results: %w", err)
	}
	for _, row := range old.CPU {
		if !slices.ContainsFunc(r.CPU, func(is CPURow) bool { return is.Name == row.Name }) {
			r.CPU = append(r.CPU, row)
		}
	}
	if r.Features == nil {
		r.Features = old.Features
	}
	if r.Guards == nil {
		r.Guards = old.Guards
	}
	if r.Backends == nil {
		r.Backends = old.Backends
	}
	if r.Handshakes == nil {
		r.Handshakes = old.Handshakes
	}
	if r.Scales == nil {
		r.Scales = old.Scales
	}
	if r.Starts == nil {
		r.Starts = old.Starts
	}
	if r.Series == nil {
		r.Series = old.Series
	}
	if r.Cluster == nil {
		r.Cluster = old.Cluster
	}
	return nil
}

func (r Results) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// A stage is what all measurements share.
type stage struct {
	// dir holds everything that is written.
	dir      string
	headgate string
	nginx    nginx.Capabilities
	// backend is the port of the NGINX that answers what is proxied.
	backend   int
	processes []*process
	// arguments are further ones for Headgate, and environment for all processes.
	arguments, environment []string
}

// Cores: the worker that is measured has one for itself.
const (
	workerCore = 0
	loadCore   = 1
)

func newStage(ctx context.Context, headgate string) (*stage, error) {
	headgate, err := filepath.Abs(headgate)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(headgate); err != nil {
		return nil, fmt.Errorf("find Headgate: %w; `make build` makes it", err)
	}
	if runtime.NumCPU() < 2 {
		return nil, errors.New("two cores are needed, one for the worker and one for the load")
	}
	for _, program := range []string{"wrk", "taskset"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%w; on Debian and Ubuntu: apt-get install wrk util-linux", err)
		}
	}
	capabilities, err := nginx.Discover(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir, headgate: headgate, nginx: capabilities}
	// NGINX's workers run as another user, and have to get in.
	if err := os.Chmod(dir, 0o711); err != nil {
		s.close()
		return nil, err
	}
	if err := s.startBackend(ctx); err != nil {
		s.close()
		return nil, fmt.Errorf("start the backend: %w", err)
	}
	return s, nil
}

// stopFrom ends the processes that were started after the first ones.
func (s *stage) stopFrom(first int) {
	for _, p := range s.processes[first:] {
		p.stop()
	}
}

// close ends every process and removes the directory.
func (s *stage) close() {
	s.stopFrom(0)
	os.RemoveAll(s.dir)
}
