package explain

import "github.com/headgate/headgate/internal/explain/report"

// passedThrough is the backend that TLS connections of the request's name are passed through
// to, empty if NGINX serves them.
func (x *explainer) passedThrough() string {
	if h := x.hosts[x.out.Request.TLSName]; h != nil {
		return h.Passthrough
	}
	return ""
}

// answerThrough is the answer of a backend that connections are passed through to.
func (x *explainer) answerThrough(backend string) report.Answer {
	const why = "TLS connections for the host are passed through to the backend of its path /, as they are"
	built, _, _ := x.Builder.Backend(backend, x.Store)
	if n := len(built.Endpoints); n > 0 {
		return report.Answer{Backend: backend, Endpoints: n, Why: why + ": routes, policies and certificates don't apply to them"}
	}
	return report.Answer{Ends: true, Why: why + ", and it has no endpoint"}
}
