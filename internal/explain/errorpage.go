package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// explainErrorBackends describes the backends that respond instead of errors, unless they
// are described already.
func (x *explainer) explainErrorBackends(won *model.Route) {
	for _, p := range won.Policies {
		replaced := x.featureOf(p).Replaced
		if replaced == nil {
			continue
		}
		byDefault, _ := replaced(p.Value, unavailable)
		for _, key := range []string{won.Fallback, byDefault} {
			if key != "" && !slices.ContainsFunc(x.out.Backends, func(b report.Backend) bool { return b.Key == key }) {
				x.explainBackend(key, report.ErrorBackend)
			}
		}
	}
}

// replaced is the answer that a client gets instead of one of Headgate's own, as in
// lua/headgate/error_page.lua. The request has asked no backend.
func (x *explainer) replaced(won *model.Route, a report.Answer) report.Answer {
	if a.Status == 0 || a.Location != "" {
		return a
	}
	for _, p := range won.Policies {
		replaced := x.featureOf(p).Replaced
		if replaced == nil {
			continue
		}
		byDefault, ok := replaced(p.Value, a.Status)
		if !ok {
			continue
		}
		why := fmt.Sprintf("instead of %d%s: %s", a.Status, x.because(feature.ErrorPage), a.Why)
		for _, key := range []string{won.Fallback, byDefault} {
			// What was denied does not get to the denied Service.
			if n := x.endpoints(key); n > 0 && !strings.HasPrefix(won.Backend, key) {
				return report.Answer{Backend: key, Endpoints: n, Why: why}
			}
		}
		return report.Answer{Status: notFound, Why: "the built-in default backend answers " + why}
	}
	return a
}
