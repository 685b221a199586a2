// Package errorlog has the settings of NGINX's error log, and of a syslog server for both logs.
package errorlog

import (
	"cmp"

	"github.com/headgate/headgate/internal/model/logging"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
)

const maxPort = 1<<16 - 1

var (
	level = feature.Setting[logging.ErrorLevel]{
		Key: "error-log-level", Parse: logging.NewErrorLevel, Scope: feature.ScopeProcess,
		Doc: "The least level of messages about requests in the error log. Without it, it is `notice`, and `debug` with `-v=5` or more.",
	}
	path = feature.Setting[logging.Target]{
		Key: "error-log-path", Parse: logging.ErrorLogTarget, Scope: feature.ScopeProcess,
		Doc: "File or syslog server that messages about requests are written to. Without it, and with `/var/log/nginx/error.log`, they are in the log of the controller.",
	}
	enableSyslog = feature.Setting[bool]{
		Key: "enable-syslog", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Sends the access log and messages about requests to the syslog server `syslog-host`, instead of files and of the container's outputs.",
	}
	host = feature.Setting[string]{
		Key: "syslog-host", Parse: logging.NewSyslogHost, Scope: feature.ScopeProcess,
		Doc: "DNS name or address of the syslog server. NGINX looks a name up at each reload.",
	}
	port = feature.Setting[int]{
		Key: "syslog-port", Default: 514, Parse: feature.Int(1, maxPort), Scope: feature.ScopeProcess,
		Doc: "UDP port of the syslog server.",
	}
)

// Feature is NGINX's error log, and syslog.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "error_messages",
		Doc:      "The error log of NGINX, and syslog.",
		Settings: []feature.AnySetting{level, path, enableSyslog, host, port},
		Process:  ofProcess,
	}
}

func ofProcess(v feature.Values, out *feature.ProcessOut) {
	out.Process.ErrorLog.Level = level.Get(v)
	if enableSyslog.Get(v) {
		out.Process.Syslog = serverFor(v, out)
	}
	if out.Process.Syslog == (logging.Syslog{}) {
		out.Process.ErrorLog.Target = out.LogTarget(path, "error_log", levelOf(v))
	}
}

// serverFor is the syslog server, none if NGINX can't send to it: with a name that has no address,
// NGINX rejects its whole configuration.
func serverFor(v feature.Values, out *feature.ProcessOut) logging.Syslog {
	if host.Get(v) == "" {
		out.Reject(enableSyslog, finding.InvalidValue, "enable-syslog needs the key syslog-host with the DNS name or the address of a server")
		return logging.Syslog{}
	}
	server := logging.NewSyslog(host.Get(v), port.Get(v))
	if !out.TryLog(host, host.Get(v), "error_log", server.String(), levelOf(v)) {
		return logging.Syslog{}
	}
	return server
}

func levelOf(v feature.Values) string { return cmp.Or(level.Get(v).String(), "notice") }
