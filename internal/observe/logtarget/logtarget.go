// Package logtarget writes a log to a file, to a syslog server, or to an output of the process,
// and changes from one to another while it is written to.
package logtarget

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// A Writer writes lines to a target that can be changed. Writes may block, so one goroutine alone
// makes them, which nothing waits for.
type Writer struct {
	usual  io.Writer
	wanted atomic.Pointer[target]
	// current is what the last write was for.
	current *target
}

type target struct {
	name string
	to   io.Writer
}

// New returns a Writer to the usual target.
func New(usual io.Writer) *Writer {
	w := &Writer{usual: usual}
	w.wanted.Store(&target{to: usual})
	return w
}

// Set changes the target: a file, "syslog:server=ADDRESS" with options as in NGINX, or the usual one
// if the name is empty. After an error it is the usual one.
func (w *Writer) Set(name string) error {
	if w.wanted.Load().name == name {
		return nil
	}
	next := &target{name: name, to: w.usual}
	var err error
	if rest, is := strings.CutPrefix(name, "syslog:"); is {
		next.to, err = newSender(rest)
	} else if name != "" {
		next.to, err = openFile(name)
	}
	if err != nil {
		next = &target{to: w.usual}
		err = fmt.Errorf("open the log: %w", err)
	}
	w.wanted.Store(next)
	return err
}

// Write writes one line.
func (w *Writer) Write(line []byte) (int, error) {
	if next := w.wanted.Load(); next != w.current {
		if w.current != nil && w.current.to != w.usual {
			if c, is := w.current.to.(io.Closer); is {
				// A log that can't be closed has nowhere to be reported.
				_ = c.Close()
			}
		}
		w.current = next
	}
	return w.current.to.Write(line)
}

// How long a server may take to be looked up, and how long it is left alone after a failure.
const (
	dialTimeout = 5 * time.Second
	dialPause   = 5 * time.Second
)

// A sender sends each line as a message of RFC 3164.
type sender struct {
	network, address string
	priority         int
	tag, host        string
	connection       net.Conn
	retry            time.Time
}

var errLeftAlone = errors.New("the syslog server can't be reached")

func facilities() []string {
	return strings.Fields("kern user mail daemon auth intern lpr news uucp clock authpriv ftp ntp audit alert cron local0 local1 local2 local3 local4 local5 local6 local7")
}

func severities() []string {
	return strings.Fields("emerg alert crit error warn notice info debug")
}

// newSender reads options as NGINX's: server=ADDRESS,facility=local7,severity=info,tag=nginx,nohostname.
func newSender(options string) (*sender, error) {
	s := &sender{network: "udp", tag: "nginx"}
	s.host, _ = os.Hostname() // Without it, the message has none.
	facility, severity := "local7", "info"
	for option := range strings.SplitSeq(options, ",") {
		switch name, value, _ := strings.Cut(option, "="); name {
		case "server":
			s.address = value
		case "facility":
			facility = value
		case "severity":
			severity = value
		case "tag":
			s.tag = value
		case "nohostname":
			s.host = ""
		default:
			return nil, fmt.Errorf("unknown option %q", option)
		}
	}
	f, l := slices.Index(facilities(), facility), slices.Index(severities(), severity)
	if f < 0 || l < 0 || s.address == "" {
		return nil, errors.New("unknown facility or severity, or no server")
	}
	s.priority = 8*f + l
	if path, is := strings.CutPrefix(s.address, "unix:"); is {
		s.network, s.address = "unixgram", path
	} else if _, _, err := net.SplitHostPort(s.address); err != nil {
		s.address = net.JoinHostPort(strings.Trim(s.address, "[]"), "514")
	}
	return s, nil
}

// Write sends a line. What can't be sent is lost, as with NGINX.
func (s *sender) Write(line []byte) (int, error) {
	now := time.Now()
	if s.connection == nil {
		if now.Before(s.retry) {
			return 0, errLeftAlone
		}
		connection, err := net.DialTimeout(s.network, s.address, dialTimeout)
		if err != nil {
			s.retry = time.Now().Add(dialPause)
			return 0, fmt.Errorf("send to the syslog server: %w", err)
		}
		s.connection = connection
	}
	host := s.host
	if host != "" {
		host += " "
	}
	_, err := fmt.Fprintf(s.connection, "<%d>%s %s%s: %s", s.priority, now.Format(time.Stamp), host, s.tag, strings.TrimSuffix(string(line), "\n"))
	if err != nil {
		// Its name may have another address now.
		_ = s.Close()
		return 0, fmt.Errorf("send to the syslog server: %w", err)
	}
	return len(line), nil
}

// Close ends the connection.
func (s *sender) Close() error {
	if s.connection == nil {
		return nil
	}
	err := s.connection.Close()
	s.connection = nil
	return err
}
