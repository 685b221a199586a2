package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/unit"
)

// The lines of nginx.conf by which Lua comes in.
const (
	routeLine    = `server_rewrite_by_lua_block { require("headgate.route").run() }`
	balanceLine  = `balancer_by_lua_block { require("headgate.balancer").run() }`
	upstreamLine = `upstream hg_http {`
	peerLine     = `server 0.0.0.1:1; # NGINX wants one; Lua names the endpoint.`
)

// A part is a copy of Headgate's NGINX with other lines instead of routeLine and balanceLine. PORT is
// the backend's.
type part struct{ name, route, balance string }

const (
	emptyPhase = `server_rewrite_by_lua_block { return }`
	namedPeer  = `balancer_by_lua_block { require("ngx.balancer").set_current_peer("127.0.0.1", PORT) }`
)

// The parts, from what no Lua can take less than to all but the choice of an endpoint.
var copiedParts = []part{
	{"copy-none", "", ""},
	{"copy-empty", emptyPhase, namedPeer},
	{"copy-route", routeLine, namedPeer},
}

// apply replaces the lines of a configuration.
func (p part) apply(conf string, port int) (string, error) {
	conf, routed := replaceOne(conf, routeLine, p.route)
	// Other upstreams are for other protocols.
	before, behind, found := strings.Cut(conf, upstreamLine)
	behind, balanced := replaceOne(behind, balanceLine, p.balance)
	if !routed || !found || !balanced {
		return "", fmt.Errorf("nginx.conf does not have the lines %s and, in %s, %s", routeLine, upstreamLine, balanceLine)
	}
	if p.balance == "" {
		behind, _ = replaceOne(behind, peerLine, "server 127.0.0.1:PORT;")
	}
	return before + upstreamLine + strings.ReplaceAll(behind, "PORT", strconv.Itoa(port)), nil
}

// replaceOne replaces the first one, and reports whether there is one.
func replaceOne(text, old, with string) (string, bool) {
	before, behind, found := strings.Cut(text, old)
	if !found {
		return text, false
	}
	return before + with + behind, true
}

// startCopy runs NGINX with Headgate's own configuration and units, but
// with a part of the Lua phases, so that each one's cost can be seen.
func (s *stage) startCopy(ctx context.Context, h *headgate, at place, copied part) (instance, error) {
	fail := func(err error) (instance, error) {
		return instance{}, fmt.Errorf("start a copy of Headgate's NGINX: %w", err)
	}
	conf, err := h.conf()
	if err == nil {
		conf, err = copied.apply(conf, s.backend)
	}
	if err != nil {
		return fail(err)
	}
	ports, err := freePorts(2)
	if err != nil {
		return fail(err)
	}
	dir := filepath.Join(s.dir, copied.name)
	conf = strings.NewReplacer(
		h.runDir, dir,
		fmt.Sprintf(":%d ", at.http), fmt.Sprintf(":%d ", ports[0]),
		fmt.Sprintf(":%d ", at.https), fmt.Sprintf(":%d ", ports[1]),
	).Replace(conf)
	if err := copyRunDir(h.runDir, dir); err != nil {
		return fail(err)
	}
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return fail(err)
	}
	pid, err := s.startNginx(ctx, copied.name, file, ports[0])
	if err != nil {
		return fail(err)
	}
	if err := copyUnits(ctx, dataplane.New(h.socket()), dataplane.New(filepath.Join(dir, "sock", "api.sock"))); err != nil {
		return fail(err)
	}
	return instance{port: ports[0], worker: pid}, nil
}

// copyRunDir copies what NGINX reads of a run directory and makes what it
// writes to.
func copyRunDir(from, to string) error {
	err := errors.Join(
		os.Mkdir(to, 0o711),
		os.Mkdir(filepath.Join(to, "tmp"), 0o755),
		os.Mkdir(filepath.Join(to, "sock"), 0o700))
	if err != nil {
		return err
	}
	generation, err := os.ReadFile(filepath.Join(from, "generation"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, "generation"), generation, 0o644); err != nil {
		return err
	}
	return os.CopyFS(filepath.Join(to, "lua"), os.DirFS(filepath.Join(from, "lua")))
}

// copyUnits copies what one data plane holds into another.
func copyUnits(ctx context.Context, from, to *dataplane.Client) error {
	defer from.CloseIdle()
	defer to.CloseIdle()
	names := []unit.Key{unit.GlobalsKey, unit.Backend.Key(backend)}
	for i := range hosts {
		name := hostName(i)
		names = append(names, unit.Host.Key(name), unit.Name.Key(name))
	}
	var entries []unit.Change
	for _, name := range names {
		u, err := from.Unit(ctx, name)
		if err != nil {
			return err
		}
		entries = append(entries, unit.Change{Kind: name.Kind, Name: name.Name, Needs: u.Needs, Version: u.Version, Payload: u.Payload})
	}
	state, err := to.State(ctx)
	if err != nil {
		return err
	}
	if _, err := to.Push(ctx, state.Dictionary, state.Generation, entries); err != nil {
		return err
	}
	return to.Loaded(ctx)
}
