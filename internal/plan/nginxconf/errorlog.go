package nginxconf

import (
	"cmp"

	"github.com/headgate/headgate/internal/model"
)

// An errorLog is NGINX's error log in nginx.conf.
type errorLog struct {
	process model.Process
	debug   bool
}

const (
	usualLevel = "notice"
	debugLevel = "debug"
)

func (l errorLog) level() string {
	level := usualLevel
	if l.debug {
		level = debugLevel
	}
	return cmp.Or(l.process.ErrorLog.Level.String(), level)
}

// Process is the level of messages about the process itself. The controller needs those from
// error on.
func (l errorLog) Process() string {
	if l.level() == debugLevel {
		return debugLevel
	}
	return usualLevel
}

// Requests are the target and the level of messages about requests, empty if they are those of
// Process.
func (l errorLog) Requests() string {
	target := cmp.Or(l.process.Syslog.String(), l.process.ErrorLog.Target.String())
	if target == "" && l.level() == l.Process() {
		return ""
	}
	return cmp.Or(target, "stderr") + " " + l.level()
}
