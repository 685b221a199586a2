package run

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/finding"
)

// TestLook: a request that ends while workers are asked leaves the answer to others.
func TestLook(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"pid": 7, "accepting": [{"pid": 7, "generation": 1}]}`)
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer func() {
		server.Close()
		<-ended
	}()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w := &watcher{workers: workersHere(socket)}
	for range 2 {
		found := w.look(gone)
		if len(found) != 1 || found[0].Err != nil || len(found[0].Holdings) != 1 || found[0].Holdings[0].State.PID != 7 {
			t.Errorf("%+v", found)
		}
	}
}

// TestExplanationForPage: the page gets the worst findings first, not all of them, and shortened.
// Those of the explanation itself stay. Edges that lack something are first too.
func TestExplanationForPage(t *testing.T) {
	all := report.Explanation{Route: &report.Route{Carries: []report.Carried{{}}}}
	for i := range 1000 {
		all.Findings = append(all.Findings, finding.Finding{Object: fmt.Sprint(i), Code: finding.Expires, Message: strings.Repeat("x", 1<<12), Denies: i == 700})
	}
	for i := range 80 {
		e := report.Edge{Name: fmt.Sprint(i), DataPlane: report.DataPlane{Loaded: true, Units: []report.Stored{{Current: i != 70}}}}
		if i == 60 {
			e.Problem = "the edge does not answer"
		}
		all.Edges = append(all.Edges, e)
	}
	got, err := forPage(func(context.Context, explain.Query) (report.Explanation, error) { return all, nil })(t.Context(), explain.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Findings) != maxFindings || got.MoreFindings != 1000-maxFindings || got.Findings[0].Object != "700" || got.Findings[1].Object != "0" {
		t.Errorf("%d findings, and %d more; the first are of %s and %s", len(got.Findings), got.MoreFindings, got.Findings[0].Object, got.Findings[1].Object)
	}
	if n := len(got.Findings[9].Message); n > 1010 || len(all.Findings[9].Message) != 1<<12 {
		t.Errorf("a message has %d bytes, and the original %d", n, len(all.Findings[9].Message))
	}
	if len(got.Edges) != maxEdges || got.MoreEdges != 80-maxEdges || got.Edges[0].Name != "60" || got.Edges[1].Name != "70" || got.Edges[2].Name != "0" {
		t.Errorf("%d edges, and %d more; the first are %s and %s", len(got.Edges), got.MoreEdges, got.Edges[0].Name, got.Edges[1].Name)
	}
	if got.Route.Carries != nil || all.Route.Carries == nil {
		t.Error("values of policies")
	}
}
