package nginxconf

import (
	"slices"

	"github.com/headgate/headgate/internal/model/logging"

	"github.com/headgate/headgate/internal/model"
)

// A requestLog is the access log of requests in nginx.conf.
type requestLog struct {
	logging.RequestLog
	// File is where it goes, and Piped is set where that is a pipe that the controller reads.
	File  string
	Piped bool
	// Written is the format as log_format takes it.
	Written string
}

// ofRoutes are the variables of formats that Lua sets by the route of a request.
var ofRoutes = []string{"ingress_name", "location_path", "namespace", "server_name", "service_name", "service_port"}

// ofTraces are those that Lua sets by the trace of a request.
var ofTraces = []string{"opentelemetry_context_traceparent", "opentelemetry_span_id", "opentelemetry_trace_id"}

func requestLogOf(env Environment, p model.Process) requestLog {
	l := requestLog{RequestLog: p.RequestLog, File: p.RequestLog.Target.String()}
	if l.File == "" {
		l.File, l.Piped = env.AccessLog.String(), env.PipedLog
	}
	if server := p.Syslog.String(); server != "" {
		// NGINX takes no buffer for one.
		l.File, l.Piped, l.Options = server, false, logging.Options{}
	}
	l.Written = l.Format.Directive(variableOfLog(address{p.ClientAddress}))
	return l
}

// variableOfLog says which variable of nginx.conf stands for one that an administrator wrote.
// Some are ingress-nginx's own, and some of NGINX's have one value for all hosts here.
func variableOfLog(a address) func(string) logging.Part {
	same := map[string]string{
		"best_http_host": "hg_host", "connection_upgrade": "hg_connection", "full_x_forwarded_for": a.ForwardedFor()[1:],
		"pass_access_scheme": a.Scheme()[1:], "pass_port": "hg_port", "pass_server_port": "hg_port", "proxy_host": "proxy_upstream_name",
		"request_id": "hg_id", "the_real_ip": "remote_addr",
	}
	return func(name string) logging.Part {
		switch {
		case name == "balancer_ewma_score":
			// That of no endpoint.
			return logging.Part{Text: "-1"}
		case slices.Contains(ofRoutes, name), slices.Contains(ofTraces, name):
			return logging.Part{Variable: "hg_log_" + name}
		case same[name] != "":
			return logging.Part{Variable: same[name]}
		}
		return logging.Part{Variable: name}
	}
}

// Has reports whether lines have a variable of nginx.conf.
func (l requestLog) Has(variable string) bool {
	return l.Format.Has(variable) || variable == "proxy_upstream_name" && l.Format.Has("proxy_host")
}

// OfRoutes are the variables that Lua must set by the route of a request.
func (l requestLog) OfRoutes() []string { return l.those(ofRoutes) }

// OfTraces are the variables that Lua must set by the trace of a request.
func (l requestLog) OfTraces() []string { return l.those(ofTraces) }

func (l requestLog) those(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !l.Format.Has(name) })
}
