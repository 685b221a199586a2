package logging

import (
	"errors"
	"regexp"
	"slices"
)

// A Target is where a log is written: a file, a syslog server, or the output of the container
// that is usual for it. The zero value says nothing.
type Target struct {
	text string
	// usual is set where the usual output is named.
	usual bool
}

// AccessLogTarget checks the target of an access log, whose usual output is standard output.
func AccessLogTarget(text string) (Target, error) {
	return newLogTarget(text, "/dev/stdout", "/var/log/nginx/access.log")
}

// ErrorLogTarget checks the target of an error log, whose usual output is standard error.
func ErrorLogTarget(text string) (Target, error) {
	return newLogTarget(text, "stderr", "/dev/stderr", "/var/log/nginx/error.log")
}

var logTargetForm = regexp.MustCompile(`^(?:/[A-Za-z0-9_./@+,=~-]{1,500}|` +
	`syslog:server=(?:unix:/[A-Za-z0-9_./@+=~-]{1,100}|[A-Za-z0-9._-]{1,253}(?::[0-9]{1,5})?|\[[0-9A-Fa-f:.]{1,45}\](?::[0-9]{1,5})?)` +
	`(?:,(?:facility=[a-z0-9]{1,10}|severity=[a-z]{1,10}|tag=[A-Za-z0-9_]{1,32}|nohostname))*)$`)

// newLogTarget checks a target: it has nothing that NGINX could take for anything else.
func newLogTarget(text string, usual ...string) (Target, error) {
	switch {
	case text == "":
		return Target{}, nil
	case slices.Contains(usual, text):
		return Target{usual: true}, nil
	case !logTargetForm.MatchString(text):
		return Target{}, errors.New("must be an absolute path of letters, digits and _./@+,=~-, or syslog:server=ADDRESS " +
			"with options such as facility=local7, tag=nginx and severity=info, separated by commas")
	}
	return Target{text: text}, nil
}

// String is the target as access_log and error_log take it, empty for the usual output.
func (t Target) String() string { return t.text }
