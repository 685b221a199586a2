package adminapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/overview"
)

// showFindings responds with the findings that match all parameters. With a limit it is a part of
// them, with shortened texts and the number of all.
func showFindings(w http.ResponseWriter, r *http.Request, findings func() []finding.Finding) {
	wanted := r.URL.Query()
	if !known(w, wanted, "object", "code", "q", "offset", "limit") {
		return
	}
	q, ok := query(w, wanted)
	if !ok {
		return
	}
	shown := selected(findings(), wanted, q.Text)
	if !wanted.Has("limit") {
		answer(w, http.StatusOK, map[string][]finding.Finding{"findings": shown})
		return
	}
	part := overview.Part(shown, q)
	for i, f := range part.Items {
		f.Field, f.Message, f.Effect = overview.Shorten(f.Field), overview.Shorten(f.Message), overview.Shorten(f.Effect)
		part.Items[i] = f
	}
	answer(w, http.StatusOK, map[string]any{"findings": part.Items, "total": part.Total, "codes": codes(shown)})
}

// selected are the findings with one of the wanted objects and codes, and with a text.
func selected(all []finding.Finding, wanted url.Values, text string) []finding.Finding {
	fits := func(name, value string) bool { return !wanted.Has(name) || slices.Contains(wanted[name], value) }
	text = strings.ToLower(text)
	shown := []finding.Finding{}
	for _, f := range all {
		if !fits("object", f.Object) || !fits("code", string(f.Code)) {
			continue
		}
		if text == "" || strings.Contains(strings.ToLower(f.Object+" "+f.Field+" "+string(f.Code)+" "+f.Message), text) {
			shown = append(shown, f)
		}
	}
	return shown
}

// codes is the number of findings of each code.
func codes(list []finding.Finding) map[finding.Code]int {
	counts := map[finding.Code]int{}
	for _, f := range list {
		counts[f.Code]++
	}
	return counts
}
