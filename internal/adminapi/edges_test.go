package adminapi

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/finding"
)

// TestEdges: those of a control are listed, none is an empty list, and where NGINX runs there are none to ask for.
func TestEdges(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fine := Edge{Name: "edge-a", Group: "shops", Since: since, Reported: true, Release: "v1", NGINX: "1.28.0", Started: since.Add(-time.Second), Serving: true, Synced: true}
	broken := Edge{Name: "edge-b", Since: since, Reported: true, Silent: true, Problem: "<no NGINX>", Findings: []finding.Finding{two}, MoreFindings: 3}
	for name, c := range map[string]struct {
		edges  func() []Edge
		query  string
		status int
		want   string
	}{
		"two": {
			func() []Edge { return []Edge{fine, broken} }, "", 200,
			`{"edges": [{"name": "edge-a","group": "shops","since": "2026-01-02T03:04:05Z","reported": true,"silent": false,"release": "v1","nginx": "1.28.0","started": "2026-01-02T03:04:04Z","serving": true,"synced": true},` +
				`{"name": "edge-b","since": "2026-01-02T03:04:05Z","reported": true,"silent": true,"serving": false,"synced": false,"problem": "<no NGINX>",` +
				`"findings": [{"object": "ingress/default/a","field": "x","code": "InvalidValue","message": "bad","effect": "none"}],"more_findings": 3}]}`,
		},
		"none":      {func() []Edge { return nil }, "", 200, `{"edges": []}`},
		"parameter": {func() []Edge { return nil }, "?name=edge-a", 400, `{"error": "unknown parameter \"name\": there are none"}`},
		"all here":  {nil, "", 404, `{"error": "not available: NGINX runs here: only a control has edges"}`},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			stop, err := Start(socket, Answers{Edges: c.edges}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			response, text := ask(t, socket, "GET", "/v1/edges"+c.query)
			if got := compact(t, text); response.StatusCode != c.status || got != c.want {
				t.Errorf("%s %s\nwant %d %s", response.Status, got, c.status, c.want)
			}
			response, _ = ask(t, socket, "POST", "/v1/edges")
			if allow := response.Header.Get("Allow"); response.StatusCode != 405 || !strings.Contains(allow, "GET") {
				t.Errorf("POST: %s, Allow: %s", response.Status, allow)
			}
		})
	}
}
