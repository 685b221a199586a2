package nginx

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// maxMessage limits a message of NGINX's error log. NGINX itself cuts at 2 KiB.
const maxMessage = 16 << 10

type logLine struct {
	// level is NGINX's name. It is empty on a continuation line.
	level string
	// pid and connection are 0 if the line has none.
	pid, connection int
	text            string
}

var lineForm = regexp.MustCompile(
	`^(?:nginx: \[(\w+)\] |\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[(\w+)\] (\d+)#\d+: (?:\*(\d+) )?)`)

// parseLine parses "2025/11/21 12:37:00 [error] 12#12: *3 text", and the form
// "nginx: [emerg] text" of messages before the log is open.
func parseLine(text string) logLine {
	found := lineForm.FindStringSubmatch(text)
	if found == nil {
		return logLine{text: text}
	}
	l := logLine{level: found[1] + found[2], text: text[len(found[0]):]}
	// Without digits, or with too many, the number is 0.
	l.pid, _ = strconv.Atoi(found[3])
	l.connection, _ = strconv.Atoi(found[4])
	return l
}

func slogLevel(level string) slog.Level {
	switch level {
	case "debug", "info", "notice":
		// NGINX writes debug messages only if its settings ask for them.
		return slog.LevelInfo
	case "warn":
		return slog.LevelWarn
	}
	return slog.LevelError
}

// isRoutine reports whether a notice is one of those that NGINX writes at each
// start, reload and stop, which the controller logs itself. Notices about requests,
// notices of Lua, and signals of other processes are not routine.
func (l logLine) isRoutine() bool {
	return l.level == "notice" && l.connection == 0 && !strings.HasPrefix(l.text, "[lua]") && !l.isStrangersSignal()
}

// isStrangersSignal reports whether a signal came neither from this process nor
// from a child of NGINX.
func (l logLine) isStrangersSignal() bool {
	name, sender, ok := strings.Cut(l.text, " received from ")
	sender, _, _ = strings.Cut(sender, ",")
	return ok && strings.HasPrefix(name, "signal ") && !strings.HasSuffix(name, "(SIGCHLD)") && sender != strconv.Itoa(os.Getpid())
}

// An errorLog converts NGINX's error log into log lines.
type errorLog struct {
	log *slog.Logger
	// done is closed when the last process that could write has ended.
	done chan struct{}

	mu sync.Mutex
	// first is the first error message.
	first string
}

// follow reads until the end and closes r. Each read is a message.
func follow(r io.ReadCloser, log *slog.Logger) *errorLog {
	e := &errorLog{log: log, done: make(chan struct{})}
	go func() {
		defer close(e.done)
		defer r.Close()
		message := make([]byte, maxMessage)
		level := slog.LevelWarn
		for {
			n, err := r.Read(message)
			if n > 0 {
				level = e.write(string(message[:n]), level)
			}
			if err != nil {
				return
			}
		}
	}()
	return e
}

// write logs the lines of a message. Only the first one may have a level: the others may be
// what a client sent.
func (e *errorLog) write(message string, before slog.Level) slog.Level {
	first, others, _ := strings.Cut(strings.TrimSuffix(message, "\n"), "\n")
	level := e.writeLine(parseLine(first), before)
	for line := range strings.SplitSeq(others, "\n") {
		if line != "" {
			e.writeLine(logLine{text: line}, level)
		}
	}
	return level
}

// writeLine logs one line. A line without a level has that of the line before.
func (e *errorLog) writeLine(l logLine, before slog.Level) slog.Level {
	level := before
	if l.level != "" {
		level = slogLevel(l.level)
	}
	if l.isRoutine() {
		level = slog.LevelDebug
	}
	var attrs []slog.Attr
	if l.pid != 0 {
		attrs = append(attrs, slog.Int("pid", l.pid))
	}
	if l.connection != 0 {
		attrs = append(attrs, slog.Int("connection", l.connection))
	}
	switch l.level {
	case "emerg", "alert", "crit", "debug":
		attrs = append(attrs, slog.String("severity", l.level))
	}
	if level == slog.LevelError {
		e.mu.Lock()
		e.first = cmp.Or(e.first, l.text)
		e.mu.Unlock()
	}
	e.log.LogAttrs(context.Background(), level, l.text, attrs...)
	return level
}

// reason is the reason why NGINX did not start, if it gave one.
func (e *errorLog) reason() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.first
}
