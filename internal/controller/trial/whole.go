package trial

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/nginx/rundir"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/syntax/nginxsyntax"
)

// wholeCandidate is the file that NGINX tests texts of the administrator in.
const wholeCandidate = "nginx.conf.try"

// maxWholes bounds how many results of tests are remembered.
const maxWholes = 64

// A Whole has NGINX test configurations with texts of the administrator.
type Whole struct {
	trials      *Trials
	environment nginxconf.Environment
	process     *nginx.Process
	runDir      *rundir.Dir
	// current are the globals that NGINX has.
	current func() model.Globals
	// results are by a digest of the configuration.
	results map[[sha256.Size]byte]error
	// accepted are the globals that were built last, and any is set once there are some.
	accepted model.Globals
	any      bool
	// failed are texts that passed the test, but that NGINX could not be reloaded with, and why.
	failed map[model.Snippets]error
}

// NewWhole returns one that tests in the time of trials. current returns the globals that NGINX has.
func NewWhole(trials *Trials, environment nginxconf.Environment, process *nginx.Process, runDir *rundir.Dir, current func() model.Globals) *Whole {
	return &Whole{
		trials: trials, environment: environment, process: process, runDir: runDir, current: current,
		results: map[[sha256.Size]byte]error{}, failed: map[model.Snippets]error{},
	}
}

// Settings are how build tests texts.
func (w *Whole) Settings() build.Whole {
	return build.Whole{Try: w.try, Last: func() (model.Globals, bool) { return w.accepted, w.any }}
}

// Accept notes globals that were built. While they lack texts that may control access, none are good.
func (w *Whole) Accept(g model.Globals) {
	if w.accepted, w.any = g, w.any || !g.Unguarded; g.Process.Snippets.IsZero() {
		clear(w.failed)
	}
}

// try tests globals as build.Whole says.
func (w *Whole) try(g model.Globals) error {
	if err := w.failed[g.Process.Snippets]; err != nil {
		return err
	}
	if err := otherKey(w.current().Process.Snippets.HTTP, g.Process.Snippets.HTTP); err != nil {
		return err
	}
	files, err := nginxconf.Whole(w.environment, g, nginxconf.FirstDictionaries(0, 0))
	if wrong := (*nginxconf.TemplateError)(nil); errors.As(err, &wrong) {
		return &feature.RejectedError{Place: model.InTemplate, Line: wrong.Line, Reason: wrong.Reason}
	} else if err != nil {
		return err
	}
	conf := files[nginxconf.File]
	delete(files, nginxconf.File)
	files[wholeCandidate] = conf
	key := sha256.Sum256(conf)
	if result, known := w.results[key]; known {
		return result
	}
	return w.trials.time("", func(ctx context.Context) error {
		err := w.test(ctx, g, files)
		if !feature.IsUntested(err) {
			if len(w.results) >= maxWholes {
				clear(w.results)
			}
			w.results[key] = err
		}
		return err
	})
}

func (w *Whole) test(ctx context.Context, g model.Globals, files map[string][]byte) error {
	if err := w.ownLogs(g.Process.Snippets); err != nil {
		return err
	}
	if err := w.checkListeners(g.Process); err != nil {
		return err
	}
	err := w.runDir.Write(files)
	if err != nil {
		return &feature.UntestedError{Err: err}
	}
	file := filepath.Join(w.runDir.Path(), wholeCandidate)
	err = w.process.Test(ctx, file)
	var rejected *nginx.ConfError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &rejected) || rejected.Scarce():
		return &feature.UntestedError{Err: err}
	}
	result := &feature.RejectedError{Reason: rejected.Reason}
	if rejected.File == file {
		if place, line, found := model.PlaceAt(string(files[wholeCandidate]), rejected.Line); found {
			result.Place, result.Line = place, line
			result.Reason = named(g.Process.Snippets.At(place).String(), line, rejected.Reason)
		}
	} else if rejected.File != "" {
		result.Reason += fmt.Sprintf(" in %s:%d", rejected.File, rejected.Line)
	}
	return result
}

// named adds the name of the directive in a line to a reason that names none.
func named(text string, line int, reason string) string {
	parsed, err := nginxsyntax.Parse(text)
	if err != nil || strings.Contains(reason, `"`) {
		return reason
	}
	name := ""
	nginxsyntax.Walk(parsed, func(d nginxsyntax.Directive) {
		if d.Line <= line {
			name = d.Name
		}
	})
	return fmt.Sprintf("%q: %s", name, reason)
}

// ownLogs refuses logs in the run directory: NGINX creates them, and appends to them, even when it
// tests a configuration.
func (w *Whole) ownLogs(s model.Snippets) error {
	for _, place := range model.Places() {
		parsed, err := nginxsyntax.Parse(s.At(place).String())
		if err != nil {
			continue
		}
		var result error
		nginxsyntax.Walk(parsed, func(d nginxsyntax.Directive) {
			if (d.Name == "access_log" || d.Name == "error_log") && len(d.Args) > 0 && result == nil {
				if own := w.process.OwnLog(d.Name + " " + d.Args[0]); own != "" {
					result = &feature.RejectedError{Place: place, Line: d.Line, Reason: fmt.Sprintf("%q is in the directory of Headgate's own files", own)}
				}
			}
		})
		if result != nil {
			return result
		}
	}
	return nil
}

// checkListeners refuses addresses that another process has: NGINX does not test that, and a reload
// with them fails. NGINX may have them already. It refuses too all addresses of the ports for http and https where only
// some are to be open.
func (w *Whole) checkListeners(p model.Process) error {
	env, s := w.environment, p.Snippets
	public := []uint16{uint16(env.HTTPPort), uint16(env.HTTPSPort)}
	own := []uint16{uint16(env.HTTPPort), uint16(env.HTTPSPort), uint16(env.DefaultServerPort), uint16(env.StatusPort)}
	for _, l := range listeners(w.current().Process.Snippets.HTTP) {
		own = append(own, l.address.Port())
	}
	for _, l := range listeners(s.HTTP) {
		if slices.Contains(public, l.address.Port()) && l.address.Addr().IsUnspecified() && !slices.Contains(p.Listening.At(true), l.address.Addr()) {
			return &feature.RejectedError{Place: model.InHTTP, Line: l.line, Reason: fmt.Sprintf("can't listen on %s: must be an address of the keys bind-address and disable-ipv6", l.address)}
		}
		if slices.Contains(own, l.address.Port()) {
			continue
		}
		if err := nginx.CheckPorts([]netip.AddrPort{l.address}, nil); err != nil {
			return &feature.RejectedError{Place: model.InHTTP, Line: l.line, Reason: err.Error()}
		}
	}
	return nil
}

// otherKey refuses a zone of a limit with another key than the zone that NGINX has: it finds that only at a reload,
// which fails then. A zone of another size is a new one.
func otherKey(current, next model.AdminText) error {
	now := zonesIn(current)
	for zone, d := range zonesIn(next) {
		if was, is := now[zone]; is && was.Name == d.Name && was.Args[0] != d.Args[0] {
			return &feature.RejectedError{Place: model.InHTTP, Line: d.Line, Reason: fmt.Sprintf("%q: the key of a zone can't change from %s to %s: give the zone another name", d.Name, was.Args[0], d.Args[0])}
		}
	}
	return nil
}

// zonesIn are the directives with zones of limits in a text, by "zone=NAME:SIZE".
func zonesIn(text model.AdminText) map[string]nginxsyntax.Directive {
	parsed, err := nginxsyntax.Parse(text.String())
	if err != nil {
		return nil
	}
	zones := map[string]nginxsyntax.Directive{}
	for _, d := range parsed {
		if d.Name != "limit_req_zone" && d.Name != "limit_conn_zone" || len(d.Args) == 0 {
			continue
		}
		for _, argument := range d.Args[1:] {
			if strings.HasPrefix(argument, "zone=") {
				zones[argument] = d
			}
		}
	}
	return zones
}

type listener struct {
	address netip.AddrPort
	line    int
}

// listeners are the TCP addresses that servers in a text listen on. NGINX reports what is not an address.
func listeners(text model.AdminText) []listener {
	parsed, err := nginxsyntax.Parse(text.String())
	if err != nil {
		return nil
	}
	var list []listener
	nginxsyntax.Walk(parsed, func(d nginxsyntax.Directive) {
		if d.Name != "listen" || len(d.Args) == 0 || slices.Contains(d.Args, "quic") {
			return
		}
		if address, ok := listenAddress(d.Args[0]); ok {
			list = append(list, listener{address, d.Line})
		}
	})
	return list
}

func listenAddress(text string) (netip.AddrPort, bool) {
	if port, err := strconv.ParseUint(text, 10, 16); err == nil {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(port)), true
	}
	if port, is := strings.CutPrefix(text, "*:"); is {
		text = "0.0.0.0:" + port
	}
	if address, err := netip.ParseAddrPort(text); err == nil {
		return address, true
	}
	const http = 80
	address, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return netip.AddrPortFrom(address, http), err == nil
}

// Fail refuses texts that passed the test, but that NGINX could not be reloaded with.
func (w *Whole) Fail(texts model.Snippets, err error) {
	w.failed[texts] = &feature.RejectedError{Reason: err.Error()}
}
