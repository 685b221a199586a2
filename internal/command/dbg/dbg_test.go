package dbg

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/adminapi"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/nginx/rundir"
	"github.com/headgate/headgate/internal/unit"
)

// TestDifference: the directives of a profile that the default location lacks.
func TestDifference(t *testing.T) {
	settings := locations(`
        location / {
            proxy_buffering off;
            header_filter_by_lua_block { require("x").run(); }
            proxy_pass http://b;
        }

        location @p_01 {
            log_by_lua_block { require("x").run() };
            proxy_buffering on;
            proxy_pass http://b;
        }

        location @p_02 {
            proxy_buffering off;
            proxy_pass http://b;
        }

        location @p_04_access {
            proxy_buffering on;
            access_by_lua_block { require("headgate.access").run(false) }
        }

        location @p_04_access_filter {
            proxy_buffering off;
        }

        location / {
            return 404;
        }
`)
	for profile, want := range map[string]string{"p_01": "proxy_buffering on;", "p_02": "-", "p_03": "not in nginx.conf", "p_04": "proxy_buffering on;"} {
		if got := difference(settings, profile); got != want {
			t.Errorf("%s: got %s, want %s", profile, got, want)
		}
	}
	if got := profile("p_0123abcdef45_access_filter_http"); got != "p_0123abcdef45" {
		t.Error(got)
	}
}

// TestDebugWithoutController: the error says what to do.
func TestDebugWithoutController(t *testing.T) {
	for _, line := range []string{"backends all", "hosts", "findings", "certs get a.test", "conf", "general", "routes a.test"} {
		command := Command()
		command.SetArgs(append([]string{"--run-dir", t.TempDir()}, strings.Fields(line)...))
		if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") && !strings.Contains(err.Error(), "no controller listens on") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// serve serves the controller's API in a run directory.
func serve(t *testing.T, answers adminapi.Answers) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "dbg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := rundir.ControllerSocket(dir)
	if err := os.Mkdir(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	stop, err := adminapi.Start(socket, answers, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return dir
}

// run runs dbg there.
func run(t *testing.T, dir, line string) (out, notes string, err error) {
	t.Helper()
	var written, noted bytes.Buffer
	command := Command()
	command.SetOut(&written)
	command.SetErr(&noted)
	command.SetArgs(append([]string{"--run-dir", dir}, strings.Fields(line)...))
	err = command.ExecuteContext(t.Context())
	return written.String(), noted.String(), err
}

// TestDebugNoFindings: an empty output would not say whether the controller was asked.
func TestDebugNoFindings(t *testing.T) {
	dir := serve(t, adminapi.Answers{Findings: func() []finding.Finding { return nil }})
	if out, notes, err := run(t, dir, "findings"); err != nil || out != "" || notes != "no findings\n" {
		t.Errorf("%q, %q, %v", out, notes, err)
	}
}

// TestDebugEdges: the edges of a control, as they say, without what terminals take for commands.
func TestDebugEdges(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	list := []adminapi.Edge{
		{Name: "edge-a", Group: "shops", Since: since, Reported: true, Serving: true, Synced: true, Release: "v1", NGINX: "1.28.0"},
		{Name: "edge-b", Since: since, Reported: true, Problem: "no\tNGINX\n\x1b[2J", Findings: make([]finding.Finding, 2), MoreFindings: 3},
		{Name: "edge-c", Since: since},
		{Name: "edge-d", Since: since, Reported: true, Silent: true, Serving: true, Synced: true},
		{Name: "edge-e", Since: since, Reported: true, Serving: true},
	}
	dir := serve(t, adminapi.Answers{Edges: func() []adminapi.Edge { return list }})
	const want = `NAME     GROUP   STATE                               FINDINGS   NGINX    RELEASE   CONNECTED SINCE
edge-a   shops   serving, synced                     0          1.28.0   v1        2026-01-02T03:04:05Z
edge-b   -       not serving: no\tNGINX\n\u001b[2J   5          -        -         2026-01-02T03:04:05Z
edge-c   -       has not reported yet                0          -        -         2026-01-02T03:04:05Z
edge-d   -       silent                              0          -        -         2026-01-02T03:04:05Z
edge-e   -       applying changes                    0          -        -         2026-01-02T03:04:05Z
`
	if out, _, err := run(t, dir, "edges"); err != nil || out != want {
		t.Errorf("%v: got\n%s\nwant\n%s", err, out, want)
	}
	out, _, err := run(t, dir, "edges -o json")
	var got edges
	if err != nil || json.Unmarshal([]byte(out), &got) != nil || len(got.Edges) != 5 || got.Edges[1].Problem != list[1].Problem {
		t.Errorf("%v: %s", err, out)
	}
	list = nil
	if out, notes, err := run(t, dir, "edges"); err != nil || out != "" || notes != "no edge is connected\n" {
		t.Errorf("%q, %q, %v", out, notes, err)
	}
	if _, _, err := run(t, dir, "edges -o yaml"); err == nil || !strings.Contains(err.Error(), "must be text or json") {
		t.Error(err)
	}
}

// TestDebugElsewhere: where what is asked for is not, the error says where it is.
func TestDebugElsewhere(t *testing.T) {
	units := func(context.Context, unit.Kind) ([]string, error) { return []string{"shop/web/80"}, nil }
	control := serve(t, adminapi.Answers{Units: units, Edges: func() []adminapi.Edge { return nil }})
	edge := serve(t, adminapi.Answers{Units: units})
	for _, line := range []string{"backends all", "hosts get a.test", "conf", "general", "routes a.test", "profiles"} {
		if _, _, err := run(t, control, line); err == nil || !strings.Contains(err.Error(), "this is a control, and NGINX runs in its edges") {
			t.Errorf("%s in a control: %v", line, err)
		}
		if _, _, err := run(t, edge, line); err == nil || strings.Contains(err.Error(), "control") {
			t.Errorf("%s without NGINX: %v", line, err)
		}
	}
	if _, _, err := run(t, edge, "edges"); err == nil || !strings.Contains(err.Error(), "only a control has edges: ask the control") {
		t.Error(err)
	}
}
