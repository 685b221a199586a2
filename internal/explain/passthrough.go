package explain

import (
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/router"
)

// passedThrough is the backend that TLS connections of the request's name are passed through
// to, empty if NGINX serves them.
func (x *explainer) passedThrough() string {
	name := x.out.Request.TLSName
	if name == "" {
		name = model.DefaultHost
	} else if found, err := x.router.Name(name); err == nil && found.By == router.ByWildcard {
		name = found.Host
	}
	if h := x.hosts[name]; h != nil && (name != model.DefaultHost || x.out.Request.TLSName == "") {
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
