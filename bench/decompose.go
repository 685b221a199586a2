package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/unit"
)

// The lines of nginx.conf by which Lua comes in.
const (
	routeLine   = `server_rewrite_by_lua_block { require("headgate.route").run() }`
	balanceLine = `balancer_by_lua_block { require("headgate.balancer").run() }`
	peerLine    = `server 0.0.0.1:1; # NGINX wants one; Lua names the endpoint.`
)

// startCopy runs NGINX with Headgate's own configuration and units, but
// without some of the Lua phases, so that each one's cost can be seen.
func (s *stage) startCopy(ctx context.Context, h *headgate, at place, name string, without ...string) (instance, error) {
	fail := func(err error) (instance, error) {
		return instance{}, fmt.Errorf("start a copy of Headgate's NGINX: %w", err)
	}
	conf, err := h.conf()
	if err != nil {
		return fail(err)
	}
	ports, err := freePorts(2)
	if err != nil {
		return fail(err)
	}
	for _, line := range without {
		if !strings.Contains(conf, line) {
			return fail(fmt.Errorf("nginx.conf does not have the line %s", line))
		}
		conf = strings.Replace(conf, line, "", 1)
		if line == balanceLine {
			conf = strings.Replace(conf, peerLine, fmt.Sprintf("server 127.0.0.1:%d;", s.backend), 1)
		}
	}
	dir := filepath.Join(s.dir, name)
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
	pid, err := s.startNginx(ctx, name, file, ports[0])
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
