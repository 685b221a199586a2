package inspection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/explain"
)

// Explain says what becomes of a request. An *explain.QuestionError says what
// is wrong with the question; any other error is for now only.
type Explain func(context.Context, explain.Question) (explain.Explanation, error)

// mostWait bounds how long an answer is waited for.
const mostWait = 10 * time.Second

// showExplanation answers the question that the parameters are.
func showExplanation(w http.ResponseWriter, r *http.Request, ask Explain) {
	wanted := r.URL.Query()
	for name, values := range wanted {
		if !slices.Contains([]string{"url", "method", "header", "from"}, name) {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("no such parameter %q: url, method, header and from are there", name))
			return
		}
		if name != "header" && len(values) > 1 {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("the parameter %s stands there %d times", name, len(values)))
			return
		}
	}
	if wanted.Get("url") == "" {
		refuse(w, http.StatusBadRequest, "the parameter url is missing")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), mostWait)
	defer cancel()
	explanation, err := ask(ctx, explain.Question{
		URL: wanted.Get("url"), Method: wanted.Get("method"), Headers: wanted["header"], From: wanted.Get("from"),
	})
	if wrong := new(explain.QuestionError); errors.As(err, &wrong) {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	answer(w, http.StatusOK, explanation)
}
