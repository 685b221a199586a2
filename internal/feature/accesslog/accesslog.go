// Package accesslog has the access log of requests: its form, where it goes, and which requests
// have a line. What concerns a route needs no reload.
package accesslog

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/logging"
)

var (
	disable = feature.Setting[bool]{
		Key: "disable-access-log", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Disables the access logs of requests and of TCP and UDP services.",
	}
	disableHTTP = feature.Setting[bool]{
		Key: "disable-http-access-log", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Disables the access log of requests.",
	}
	format = feature.Setting[logging.Format]{
		Key: "log-format-upstream", Default: logging.DefaultFormat(), Parse: logging.NewFormat, Scope: feature.ScopeProcess,
		Doc: "Format of the access log, with variables of NGINX and of [Headgate](logs.md#variables).",
	}
	escapeJSON = feature.Setting[bool]{
		Key: "log-format-escape-json", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Escapes the values of variables as in JSON strings.",
	}
	escapeNone = feature.Setting[bool]{
		Key: "log-format-escape-none", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Does not escape the values of variables: clients can write lines of their own then. It has precedence over `log-format-escape-json`.",
	}
	path = feature.Setting[logging.Target]{
		Key: "access-log-path", Parse: logging.AccessLogTarget, Scope: feature.ScopeProcess,
		Doc: "File or syslog server that the access logs of requests and of TCP and UDP services are written to. " +
			"Without it, and with `/var/log/nginx/access.log`, it is the standard output of the container.",
	}
	httpPath = feature.Setting[logging.Target]{
		Key: "http-access-log-path", Parse: logging.AccessLogTarget, Scope: feature.ScopeProcess,
		Doc: "File or syslog server for requests, instead of that of `access-log-path`.",
	}
	params = feature.Setting[logging.Options]{
		Key: "access-log-params", Parse: logging.NewOptions, Scope: feature.ScopeProcess,
		Doc: "How NGINX writes the access log of requests to a file, with a buffer of at most 16m that is flushed after at most 24h. With `gzip`, the log of TCP and UDP services is not written to that file, but to standard output.",
	}
	skip = feature.Setting[logging.SkippedURLs]{
		Key: "skip-access-log-urls", Parse: parseURLs, Scope: feature.ScopeProcess,
		Doc: "URLs, with query, whose requests are not logged, separated by commas. They are compared with what the client sent, without regard to case. " +
			"After a `~` stands a regular expression, after `~*` one that ignores case.",
	}
	ofDefaultBackend = feature.Setting[bool]{
		Key: "enable-access-log-for-default-backend", Parse: feature.Bool,
		Doc: "Logs requests for names that no Ingress has.",
	}
	enable = feature.Setting[bool]{
		Annotation: "enable-access-log", Default: true, Parse: feature.Bool, Risk: feature.Low,
		Doc: "Logs requests.",
	}
)

// Feature is the access log of requests.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "request_log",
		Doc:      "The access log of requests.",
		Settings: []feature.AnySetting{disable, disableHTTP, format, escapeJSON, escapeNone, path, httpPath, params, skip, ofDefaultBackend, enable},
		Route:    ofRoute,
		Process:  ofProcess,
	}
}

func ofRoute(v feature.Values, out *feature.RouteOut) {
	out.Route.Unlogged = !enable.Get(v)
	if out.Host.Name == model.DefaultHost && out.Route.Origin == (model.Origin{}) {
		out.Route.Unlogged = !ofDefaultBackend.Get(v)
	}
}

func ofProcess(v feature.Values, out *feature.ProcessOut) {
	out.Process.AccessLog = !disable.Get(v)
	log := logging.RequestLog{Off: disable.Get(v) || disableHTTP.Get(v)}
	if out.Process.AccessLog {
		out.Process.AccessLogTarget = out.LogTarget(path, "access_log", "combined")
	}
	if !log.Off {
		log.Escape = escapeOf(v)
		log.Format = formatFor(v, out, log.Escape)
		log.Target = out.Process.AccessLogTarget
		if httpPath.Get(v) != (logging.Target{}) {
			log.Target = out.LogTarget(httpPath, "access_log", "combined")
		}
		log.Options = optionsFor(v, out, log.Target)
		log.Skipped = skip.Get(v)
	}
	if log.Options.Compressed() && log.Target.String() == out.Process.AccessLogTarget.String() {
		// Plain lines between compressed blocks would make the file unreadable.
		out.Process.AccessLogTarget = logging.Target{}
	}
	out.Process.RequestLog = log
}

func escapeOf(v feature.Values) logging.Escape {
	switch {
	case escapeNone.Get(v):
		return logging.EscapeNone
	case escapeJSON.Get(v):
		return logging.EscapeJSON
	}
	return logging.EscapeDefault
}
