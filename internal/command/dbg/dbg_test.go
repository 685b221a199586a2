package dbg

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/adminapi"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/nginx/rundir"
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

// TestDebugNoFindings: an empty output would not say whether the controller was asked.
func TestDebugNoFindings(t *testing.T) {
	dir, err := os.MkdirTemp("", "dbg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := rundir.ControllerSocket(dir)
	if err := os.Mkdir(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	none := func() []finding.Finding { return nil }
	stop, err := adminapi.Start(socket, adminapi.Answers{Findings: none}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	command := Command()
	var out, notes bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&notes)
	command.SetArgs([]string{"--run-dir", dir, "findings"})
	if err := command.ExecuteContext(t.Context()); err != nil || out.String() != "" || notes.String() != "no findings\n" {
		t.Errorf("%q, %q, %v", out.String(), notes.String(), err)
	}
}
