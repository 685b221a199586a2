package logging

import (
	"errors"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An ErrorLog is where NGINX writes messages about requests. Those about the process itself go
// to the controller's log in any case.
type ErrorLog struct {
	Level  ErrorLevel
	Target Target
}

// An ErrorLevel is the least level of messages that are written, with NGINX's name. The zero value
// is the default, which the flags decide.
type ErrorLevel struct{ name string }

// ErrorLevels are NGINX's levels, least first.
func ErrorLevels() []string {
	return []string{"debug", "info", "notice", "warn", "error", "crit", "alert", "emerg"}
}

// NewErrorLevel reads the name of a level.
func NewErrorLevel(text string) (ErrorLevel, error) {
	if text != "" && !slices.Contains(ErrorLevels(), text) {
		return ErrorLevel{}, errors.New("must be " + strings.Join(ErrorLevels()[:7], ", ") + " or emerg")
	}
	return ErrorLevel{text}, nil
}

func (l ErrorLevel) String() string { return l.name }

// A Syslog is a syslog server that gets the access log and the error log of requests. The zero
// value is none.
type Syslog struct{ address string }

var syslogHost = regexp.MustCompile(`^[A-Za-z0-9._-]{1,253}$`)

// NewSyslogHost checks the DNS name or the address of a server.
func NewSyslogHost(text string) (string, error) {
	bare := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	if address, err := netip.ParseAddr(bare); err == nil && address.Zone() == "" {
		return bare, nil
	}
	if text != "" && !syslogHost.MatchString(text) {
		return "", errors.New("must be a DNS name or an IP address")
	}
	return text, nil
}

// NewSyslog is the server at a host of NewSyslogHost and a port.
func NewSyslog(host string, port int) Syslog {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return Syslog{host + ":" + strconv.Itoa(port)}
}

// String is the server as access_log and error_log take it, empty for none.
func (s Syslog) String() string {
	if s.address == "" {
		return ""
	}
	return "syslog:server=" + s.address
}
