package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

//go:embed spread.lua
var spreadScript string

// connections of wrk, all keep-alive, where a side does not say another number.
const connections = 32

// A side is one NGINX under one kind of load.
type side struct {
	name string
	instance
	// host to ask for; empty to spread over a thousand of a routing.
	host    string
	routing routing
	// method is GET if it is empty, and headers are sent with each request,
	// "Name: value".
	method  string
	headers []string
	// tls and http2, which is over TLS: how requests are sent.
	tls, http2 bool
	// grpc: unary calls are sent, over HTTP/2.
	grpc bool
	// connections of the load, if they are not the usual number.
	connections int
	// step is that from one host of a routing to the next one, if it is not ten.
	step int
	// handshakes are made instead of requests.
	handshakes bool
	// clients make the handshakes in turn, each for its own host, none for a client without
	// a certificate that asks for host. resumes has them resume sessions.
	clients []clientCertificate
	resumes bool
	// with and without are set of a side that beyond returns.
	with, without *side
	// costs are the worker's microseconds per request, one for each round.
	costs []float64
}

func (s *side) String() string { return s.name }

// beyond is what one side costs more than another, as a side that is not put under load
// itself.
func beyond(with, without *side) *side { return &side{with: with, without: without} }

// loaded are the sides that are put under load for this one.
func (s *side) loaded() []*side {
	if s.with != nil {
		return []*side{s.without, s.with}
	}
	return []*side{s}
}

// perRound has the costs of each round. A difference is that of two loads of the same round, since
// the speed of a machine changes.
func (s *side) perRound() []float64 {
	if s.with == nil {
		return s.costs
	}
	costs := slices.Clone(s.with.costs)
	for i := range costs {
		costs[i] -= s.without.costs[i]
	}
	return costs
}

// take puts the side under load once and returns the worker's CPU time per
// request in microseconds.
func (s *stage) take(ctx context.Context, one *side, duration time.Duration) (float64, error) {
	before, err := cpuTime(one.worker)
	if err != nil {
		return 0, err
	}
	load := s.wrk
	switch {
	case one.handshakes:
		load = shakeHands
	case one.http2:
		load = s.h2load
	}
	requests, err := load(ctx, one, duration)
	// A busy machine may leave wrk without a turn of its own for a second. An
	// NGINX that does not answer does not answer again either.
	for tries := 1; errors.Is(err, errNoAnswer) && tries < 3; tries++ {
		fmt.Fprintf(os.Stderr, "%s: no answer in %s, once more\n", one.name, duration)
		requests, err = load(ctx, one, duration)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", one.name, err)
	}
	after, err := cpuTime(one.worker)
	if err != nil {
		return 0, err
	}
	return float64((after - before).Nanoseconds()) / 1000 / float64(requests), nil
}

var errNoAnswer = errors.New("no answer")

// wrk loads a side and returns the number of requests that were answered. Any
// answer but a good one is an error.
func (s *stage) wrk(ctx context.Context, one *side, duration time.Duration) (int, error) {
	_, requests, err := s.runWrk(ctx, one, duration, "")
	return requests, err
}

// runWrk returns what wrk printed as well. The script is one more for it.
func (s *stage) runWrk(ctx context.Context, one *side, duration time.Duration, script string) (out []byte, requests int, err error) {
	var arguments []string
	args := []string{"-c", strconv.Itoa(loadCore), "wrk", "-t", "1", "-c", strconv.Itoa(cmp.Or(one.connections, connections)), "-d", duration.String()}
	for _, header := range one.headers {
		args = append(args, "-H", header)
	}
	switch {
	case one.host == "":
		script += spreadScript
		arguments = []string{"--", one.routing.asked, one.routing.path, strconv.Itoa(cmp.Or(one.step, 10))}
	case one.method != "":
		script += fmt.Sprintf("wrk.method = %q\n", one.method)
	}
	if script != "" {
		file := filepath.Join(s.dir, "wrk.lua")
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			return nil, 0, err
		}
		args = append(args, "-s", file)
	}
	if one.host != "" {
		args = append(args, "-H", "Host: "+one.host)
	}
	scheme := "http://"
	if one.tls {
		scheme = "https://"
	}
	ctx, cancel := context.WithTimeout(ctx, duration+startTimeout)
	defer cancel()
	out, err = exec.CommandContext(ctx, "taskset", slices.Concat(args, []string{scheme + local(one.port) + cmp.Or(one.routing.path, "/")}, arguments)...).CombinedOutput()
	if err != nil {
		return nil, 0, fmt.Errorf("run wrk: %w: %s", err, out)
	}
	if regexp.MustCompile(`Socket errors: connect 0, read 0, write 0, timeout`).Match(out) && !bytes.Contains(out, []byte("Non-2xx")) {
		return nil, 0, fmt.Errorf("%w in time: %s", errNoAnswer, out)
	}
	if regexp.MustCompile(`Non-2xx|Socket errors`).Match(out) {
		return nil, 0, fmt.Errorf("wrk met failures: %s", out)
	}
	count := regexp.MustCompile(`(\d+) requests in`).FindSubmatch(out)
	if count == nil {
		return nil, 0, fmt.Errorf("wrk does not say how many requests it made: %s", out)
	}
	requests, err = strconv.Atoi(string(count[1]))
	if err == nil && requests == 0 {
		err = fmt.Errorf("%w: %s", errNoAnswer, out)
	}
	return out, requests, err
}

// h2load does so over HTTP/2, for one host.
func (s *stage) h2load(ctx context.Context, one *side, duration time.Duration) (int, error) {
	_, requests, err := s.runH2load(ctx, one, duration)
	return requests, err
}

// runH2load returns what h2load printed as well. Arguments are further ones for it.
func (s *stage) runH2load(ctx context.Context, one *side, duration time.Duration, arguments ...string) (out []byte, requests int, err error) {
	ctx, cancel := context.WithTimeout(ctx, duration+startTimeout)
	defer cancel()
	args := append([]string{
		"-c", strconv.Itoa(loadCore), "h2load", "-t", "1", "-c", strconv.Itoa(cmp.Or(one.connections, connections)),
		"-D", duration.String(), "--connect-to", local(one.port),
	}, arguments...)
	if one.grpc {
		file := filepath.Join(s.dir, "message")
		if err := os.WriteFile(file, []byte(grpcMessage), 0o600); err != nil {
			return nil, 0, err
		}
		args = append(args, "-d", file)
		for name, value := range grpcHeaders {
			args = append(args, "-H", name+": "+value)
		}
	}
	out, err = exec.CommandContext(ctx, "taskset", append(args, "https://"+one.host+"/")...).CombinedOutput()
	if err != nil {
		return nil, 0, fmt.Errorf("run h2load: %w: %s", err, out)
	}
	status := regexp.MustCompile(`status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx`).FindSubmatch(out)
	if status == nil || !regexp.MustCompile(`Application protocol: h2\n`).Match(out) {
		return nil, 0, fmt.Errorf("h2load met failures: %s", out)
	}
	requests, err = strconv.Atoi(string(status[1]))
	if err == nil && requests == 0 {
		err = fmt.Errorf("%w: %s", errNoAnswer, out)
	}
	return out, requests, err
}

// grpcMessage is a message of five bytes as gRPC sends it, and grpcHeaders are those of a
// call.
const grpcMessage = "\x00\x00\x00\x00\x05hello"

var grpcHeaders = map[string]string{"content-type": "application/grpc", "te": "trailers"}
