package adminapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/adminapi/overview"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/observe/history"
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
			`{"edges": [{"name": "edge-a","group": "shops","since": "2026-01-02T03:04:05Z","reported": true,"silent": false,"release": "v1","nginx": "1.28.0","started": "2026-01-02T03:04:04Z","serving": true,"synced": true,"state": "serving, synced"},` +
				`{"name": "edge-b","since": "2026-01-02T03:04:05Z","reported": true,"silent": true,"serving": false,"synced": false,"problem": "<no NGINX>",` +
				`"findings": [{"object": "ingress/default/a","field": "x","code": "InvalidValue","message": "bad","effect": "none"}],"more_findings": 3,"state": "silent"}]}`,
		},
		"none":      {func() []Edge { return nil }, "", 200, `{"edges": []}`},
		"parameter": {func() []Edge { return nil }, "?name=edge-a", 400, `{"error": "unknown parameter \"name\": must be q, problems, offset, limit"}`},
		"limit":     {func() []Edge { return nil }, "?limit=0", 400, `{"error": "invalid value \"0\" of limit: must be a number from 1 to 200"}`},
		"all here":  {nil, "", 404, `{"error": "not available: NGINX runs here, and only a control has edges: ask the control, if there is one"}`},
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

// TestPartOfEdges: those that need a look are first, with few findings.
func TestPartOfEdges(t *testing.T) {
	fine := Edge{Reported: true, Serving: true, Synced: true}
	named := func(name string, change func(*Edge)) Edge {
		e := fine
		e.Name = name
		change(&e)
		return e
	}
	edges := []Edge{
		named("a-fine", func(*Edge) {}), named("b-new", func(e *Edge) { *e = Edge{Name: e.Name} }), named("c-behind", func(e *Edge) { e.Synced = false }),
		named("d-findings", func(e *Edge) { e.Findings, e.MoreFindings = slices.Repeat([]finding.Finding{one}, 8), 2 }),
		named("e-silent", func(e *Edge) { e.Silent = true }), named("f-broken", func(e *Edge) { e.Serving, e.Group = false, "Shops" }),
	}
	socket := filepath.Join(t.TempDir(), "s")
	codes := func() map[finding.Code]int { return nil }
	stop, err := Start(socket, Answers{Edges: func() []Edge { return edges }, Codes: codes, Overview: &Overview{
		Table: overview.New(), History: history.New(), Status: func(context.Context) Status { return Status{} },
		Ejections: func(context.Context) []overview.Ejection { return nil },
	}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for query, want := range map[string]string{
		"":                       "a-fine b-new c-behind d-findings e-silent f-broken of 0",
		"?limit=9":               "e-silent f-broken d-findings b-new c-behind a-fine of 6",
		"?limit=2&offset=1":      "f-broken d-findings of 6",
		"?limit=9&problems=true": "e-silent f-broken d-findings of 3",
		"?limit=9&q=SHOP":        "f-broken of 1",
		"?limit=9&q=nothing":     "of 0",
	} {
		_, text := ask(t, socket, "GET", "/v1/edges"+query)
		var got struct {
			Edges []Edge
			Total int
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range got.Edges {
			names = append(names, e.Name)
			if strings.HasPrefix(query, "?limit") && e.Name == "d-findings" && (len(e.Findings) != 5 || e.MoreFindings != 5) {
				t.Errorf("%s: %d findings and %d more", query, len(e.Findings), e.MoreFindings)
			}
		}
		if got := strings.Join(append(names, fmt.Sprint("of ", got.Total)), " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if _, text := ask(t, socket, "GET", "/v1/status"); !strings.Contains(compact(t, text), `"edges": {"total": 6,"broken": 2}`) {
		t.Error(text)
	}
	if len(edges[3].Findings) != 8 {
		t.Error("the list itself was changed")
	}
}
