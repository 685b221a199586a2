package adminapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/explain/report"
)

// Explain explains a request. An *explain.QueryError is a mistake in the
// query; other errors are temporary.
type Explain func(context.Context, explain.Query) (report.Explanation, error)

// maxWait limits how long to wait for an explanation.
const maxWait = 10 * time.Second

// showExplanation answers the question that the parameters are.
func showExplanation(w http.ResponseWriter, r *http.Request, ask Explain) {
	wanted := r.URL.Query()
	for name, values := range wanted {
		if !slices.Contains([]string{"url", "method", "header", "from"}, name) {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("unknown parameter %q: must be url, method, header or from", name))
			return
		}
		if name != "header" && len(values) > 1 {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("the parameter %s is given %d times: must be given once", name, len(values)))
			return
		}
	}
	if wanted.Get("url") == "" {
		refuse(w, http.StatusBadRequest, "the parameter url is required")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), maxWait)
	defer cancel()
	explanation, err := ask(ctx, explain.Query{
		URL: wanted.Get("url"), Method: wanted.Get("method"), Headers: wanted["header"], From: wanted.Get("from"),
	})
	if wrong := new(explain.QueryError); errors.As(err, &wrong) {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	answer(w, http.StatusOK, explanation)
}
