package adminapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/unit"
)

// Units returns the names of the units of a kind that NGINX has, sorted. An error is
// temporary.
type Units func(context.Context, unit.Kind) ([]string, error)

// showUnits responds with the names of the units of one kind.
func showUnits(w http.ResponseWriter, r *http.Request, names Units) {
	var kinds []string
	for _, t := range unit.Kinds() {
		if t.Pushed() {
			kinds = append(kinds, string(t.Kind))
		}
	}
	wanted := r.URL.Query()
	kind := wanted["kind"]
	if len(wanted) != 1 || len(kind) != 1 || !slices.Contains(kinds, kind[0]) {
		refuse(w, http.StatusBadRequest, "invalid parameters: must be one kind, of "+strings.Join(kinds, ", "))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxWait)
	defer cancel()
	list, err := names(ctx, unit.Kind(kind[0]))
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("list units: %v", err))
		return
	}
	answer(w, http.StatusOK, map[string][]string{"names": list})
}
