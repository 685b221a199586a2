package adminapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/adminapi/overview"
	"github.com/headgate/headgate/internal/finding"
)

// An Edge is an NGINX that is apart from the controller.
type Edge struct {
	// Name is that of its Pod; with certificates from elsewhere, CERTIFICATE/POD, of which the edge says the second.
	Name  string `json:"name"`
	Group string `json:"group,omitempty"`
	// Since is when it connected.
	Since time.Time `json:"since"`
	// Reported: it has said what follows. Silent: it has said nothing lately.
	Reported bool      `json:"reported"`
	Silent   bool      `json:"silent"`
	Release  string    `json:"release,omitempty"`
	NGINX    string    `json:"nginx,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	// Serving: NGINX serves, and Problem is why not. Synced: it has all that the edge has received.
	Serving bool   `json:"serving"`
	Synced  bool   `json:"synced"`
	Problem string `json:"problem,omitempty"`
	// Findings are about this edge alone.
	Findings     []finding.Finding `json:"findings,omitempty"`
	MoreFindings int               `json:"more_findings,omitempty"`
}

// broken reports whether it does not serve, as far as is known.
func (e Edge) broken() bool { return e.Silent || e.Reported && !e.Serving }

// A shownEdge is one with its state in words.
type shownEdge struct {
	Edge
	State string `json:"state"`
}

func withStates(list []Edge) []shownEdge {
	all := make([]shownEdge, len(list))
	for i, e := range list {
		all[i] = shownEdge{e, e.State()}
	}
	return all
}

// State says in a few words whether it serves.
func (e Edge) State() string {
	switch {
	case e.Silent:
		return "silent"
	case !e.Reported:
		return "has not reported yet"
	case !e.Serving:
		return "not serving: " + e.Problem
	case !e.Synced:
		return "applying changes"
	}
	return "serving, synced"
}

// rank is lower for edges that need a look.
func (e Edge) rank() int {
	switch {
	case e.broken():
		return 0
	case len(e.Findings) > 0:
		return 1
	case !e.Synced:
		return 2
	}
	return 3
}

// An EdgeCount is the number of edges, and of those that do not serve.
type EdgeCount struct {
	Total  int `json:"total"`
	Broken int `json:"broken"`
}

func countEdges(edges func() []Edge) *EdgeCount {
	if edges == nil {
		return nil
	}
	var count EdgeCount
	for _, e := range edges() {
		count.Total++
		if e.broken() {
			count.Broken++
		}
	}
	return &count
}

// shownFindings is how many findings of each edge a part of the list has.
const shownFindings = 5

// showEdges responds with all edges. With a limit it is a part of them, those that need a look first, with few findings
// and the number of all.
func showEdges(w http.ResponseWriter, r *http.Request, edges func() []Edge) {
	wanted := r.URL.Query()
	if !known(w, wanted, "q", "problems", "offset", "limit") {
		return
	}
	q, ok := query(w, wanted)
	if !ok {
		return
	}
	if edges == nil {
		refuse(w, http.StatusNotFound, "not available: NGINX runs here, and only a control has edges: ask the control, if there is one")
		return
	}
	list, text := []Edge{}, strings.ToLower(q.Text)
	for _, e := range edges() {
		fits := text == "" || strings.Contains(strings.ToLower(e.Name), text) || strings.Contains(strings.ToLower(e.Group), text)
		if fits && (!q.Problems || e.broken() || len(e.Findings) > 0) {
			list = append(list, e)
		}
	}
	if !wanted.Has("limit") {
		answer(w, http.StatusOK, map[string]any{"edges": withStates(list)})
		return
	}
	slices.SortStableFunc(list, func(a, b Edge) int { return a.rank() - b.rank() })
	part := overview.Part(list, q)
	for i := range part.Items {
		e := &part.Items[i]
		if more := len(e.Findings) - shownFindings; more > 0 {
			e.Findings, e.MoreFindings = e.Findings[:shownFindings], e.MoreFindings+more
		}
	}
	answer(w, http.StatusOK, map[string]any{"edges": withStates(part.Items), "total": part.Total})
}
