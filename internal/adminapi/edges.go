package adminapi

import (
	"net/http"
	"time"

	"github.com/headgate/headgate/internal/finding"
)

// An Edge is an NGINX that is apart from the controller.
type Edge struct {
	// Name is that of its Pod; with certificates from elsewhere, CERTIFICATE/POD, of which the edge says the second.
	Name  string `json:"name"`
	Group string `json:"group,omitempty"`
	// Since is when it connected.
	Since time.Time `json:"since"`
	// Reported: it has said what follows. Silent: not lately.
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

func showEdges(w http.ResponseWriter, r *http.Request, edges func() []Edge) {
	if !known(w, r.URL.Query()) {
		return
	}
	if edges == nil {
		refuse(w, http.StatusNotFound, "not available: NGINX runs here: only a control has edges")
		return
	}
	list := edges()
	if list == nil {
		list = []Edge{}
	}
	answer(w, http.StatusOK, map[string]any{"edges": list})
}
