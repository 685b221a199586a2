package explain

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/adminapi"
	query "github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/nginx/rundir"
)

// TestExplainEdges: a running control says of each edge what its NGINX has.
func TestExplainEdges(t *testing.T) {
	dir, err := os.MkdirTemp("", "explain") // Names of sockets are short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := rundir.ControllerSocket(dir)
	if err := os.Mkdir(filepath.Dir(socket), 0o700); err != nil {
		t.Fatal(err)
	}
	stored := []report.Stored{{Kind: "host", Name: "shop.test", Version: "v2", Current: true}}
	held := func(version string) []report.Held {
		return []report.Held{{Kind: "host", Name: "shop.test", Version: version, Current: version == "v2"}}
	}
	answer := report.Explanation{
		Request: report.Request{URL: "http://shop.test/", Method: "GET", Scheme: "http", Host: "shop.test", Path: "/"},
		Answers: []report.Answer{{Scheme: "http", Status: 404, Why: "no path matches"}}, Findings: []finding.Finding{},
		Units: []report.Unit{{Kind: "host", Name: "shop.test", Version: "v2"}},
		Edges: []report.Edge{
			{Name: "edge-a", DataPlane: report.DataPlane{Generation: 3, Loaded: true, Units: stored, Workers: []report.Worker{
				{PID: 11, Generation: 3, Units: held("v2")}, {PID: 12, Generation: 3, Units: held("v1")}, {PID: 13, Generation: 3, Silent: true},
			}}},
			{Name: "edge-b", DataPlane: report.DataPlane{Problem: "the edge does not answer"}},
			{Name: "edge-c\x1b[2J", DataPlane: report.DataPlane{Generation: 1, Units: []report.Stored{{Kind: "host", Name: "shop.test"}}}},
		},
	}
	stop, err := adminapi.Start(socket, adminapi.Answers{
		Explain: func(context.Context, query.Query) (report.Explanation, error) { return answer, nil },
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	const want = `
NGINX        of the edge edge-a: generation 3 serves
             worker 11 of generation 3: current: host shop.test v2
             worker 12 of generation 3: older version: host shop.test v1
             worker 13 of generation 3 did not respond
NGINX        of the edge edge-b: the edge does not answer
NGINX        of the edge edge-c?[2J: generation 1 is not loaded yet and answers 503
             host shop.test does not exist yet
`
	var out bytes.Buffer
	command := newProgram()
	command.SetArgs([]string{"explain", "--run-dir", dir, "http://shop.test/"})
	command.SetOut(&out)
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(out.String(), "\nNGINX")
	if got = "\nNGINX" + got; got != want {
		t.Errorf("got\n%s\nwant\n%s\nin\n%s", got, want, out.String())
	}
}
