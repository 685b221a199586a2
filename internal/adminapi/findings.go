package adminapi

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/adminapi/overview"
	"github.com/headgate/headgate/internal/finding"
)

// A shownFinding is one with its severity.
type shownFinding struct {
	finding.Finding
	Severity finding.Severity `json:"severity"`
}

// showFindings responds with the findings that match all parameters. With a limit it is a part of
// them, the worst first, with shortened texts and the number of all.
func showFindings(w http.ResponseWriter, r *http.Request, from Answers) {
	wanted := r.URL.Query()
	if !known(w, wanted, "object", "code", "host", "q", "offset", "limit") {
		return
	}
	q, ok := query(w, wanted)
	if !ok {
		return
	}
	shown := selected(from.Findings(), wanted, q.Text)
	if wanted.Has("host") {
		if shown, ok = ofHost(w, shown, from.Overview, wanted.Get("host")); !ok {
			return
		}
	}
	if !wanted.Has("limit") {
		answer(w, http.StatusOK, map[string][]finding.Finding{"findings": shown})
		return
	}
	part := overview.Part(finding.WorstFirst(shown), q)
	list := make([]shownFinding, len(part.Items))
	for i, f := range part.Items {
		f.Field, f.Message, f.Effect = overview.Shorten(f.Field), overview.Shorten(f.Message), overview.Shorten(f.Effect)
		list[i] = shownFinding{f, f.Severity()}
	}
	answer(w, http.StatusOK, map[string]any{"findings": list, "total": part.Total, "codes": codes(shown)})
}

// ofHost selects the findings about what a host is made of.
func ofHost(w http.ResponseWriter, all []finding.Finding, from *Overview, host string) (shown []finding.Finding, ok bool) {
	if from == nil {
		refuse(w, http.StatusNotFound, notKept)
		return nil, false
	}
	objects := from.Table.Objects(host)
	if objects == nil {
		refuse(w, http.StatusNotFound, noHost(host))
		return nil, false
	}
	return slices.DeleteFunc(all, func(f finding.Finding) bool { return !objects[f.Object] }), true
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
