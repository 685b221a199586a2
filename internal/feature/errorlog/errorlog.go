// Package errorlog has the settings of NGINX's error log, and of a syslog server for both logs.
package errorlog

import (
	"cmp"
	"fmt"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

const maxPort = 1<<16 - 1

var (
	level = feature.Setting[model.ErrorLevel]{
		Key: "error-log-level", Parse: model.NewErrorLevel, Scope: feature.ScopeProcess,
		Doc: "The least level of messages about requests in the error log. Without it, it is `notice`, and `debug` with `-v=5` or more.",
	}
	path = feature.Setting[model.LogTarget]{
		Key: "error-log-path", Parse: model.ErrorLogTarget, Scope: feature.ScopeProcess,
		Doc: "File or syslog server that messages about requests are written to. Without it, and with `/var/log/nginx/error.log`, they are in the log of the controller.",
	}
	enableSyslog = feature.Setting[bool]{
		Key: "enable-syslog", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Sends the access log and messages about requests to the syslog server `syslog-host`, instead of files and of the container's outputs.",
	}
	host = feature.Setting[string]{
		Key: "syslog-host", Parse: model.NewSyslogHost, Scope: feature.ScopeProcess,
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
	if out.Process.Syslog == (model.Syslog{}) {
		out.Process.ErrorLog.Target = targetFor(v, out)
	}
}

// serverFor is the syslog server, none if NGINX can't send to it: with a name that has no address,
// NGINX rejects its whole configuration.
func serverFor(v feature.Values, out *feature.ProcessOut) model.Syslog {
	if host.Get(v) == "" {
		out.Reject(enableSyslog, finding.InvalidValue, "enable-syslog needs the key syslog-host with the DNS name or the address of a server")
		return model.Syslog{}
	}
	server := model.NewSyslog(host.Get(v), port.Get(v))
	if err := try(v, server.String()); err != nil {
		reject(out, host, host.Get(v), err)
		return model.Syslog{}
	}
	return server
}

// targetFor is the target, the default one if NGINX can't open it: it rejects its whole
// configuration then.
func targetFor(v feature.Values, out *feature.ProcessOut) model.LogTarget {
	target := path.Get(v)
	if target.String() == "" {
		return model.LogTarget{}
	}
	if err := try(v, target.String()); err != nil {
		reject(out, path, target.String(), err)
		return model.LogTarget{}
	}
	return target
}

func try(v feature.Values, target string) error {
	line := "error_log " + target + " " + cmp.Or(level.Get(v).String(), "notice") + ";"
	return v.Try(feature.Trial{Lines: func(string) (http, location []string) { return []string{line}, nil }})
}

// reject reports a value that is not used.
func reject(out *feature.ProcessOut, setting feature.AnySetting, value string, err error) {
	if feature.IsUntested(err) {
		out.Reject(setting, finding.Waits, fmt.Sprintf("%q could not be tested yet, and will be again: %s", value, err))
		return
	}
	out.Reject(setting, finding.InvalidValue, fmt.Sprintf("invalid value %q: %s", value, err))
}
