package nginx

import (
	"bufio"
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

// maxLine bounds a line of NGINX's error log. NGINX itself cuts at 2 KiB.
const maxLine = 16 << 10

// A logLine is a line of NGINX's error log.
type logLine struct {
	// level is NGINX's name, empty on a line that goes on with the one before.
	level string
	// pid and connection are 0 where the line has none.
	pid, connection int
	text            string
}

var lineForm = regexp.MustCompile(
	`^(?:nginx: \[(\w+)\] |\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[(\w+)\] (\d+)#\d+: (?:\*(\d+) )?)`)

// parseLine reads "2025/11/21 12:37:00 [error] 12#12: *3 text", and the form
// "nginx: [emerg] text" of messages before the log is open.
func parseLine(text string) logLine {
	found := lineForm.FindStringSubmatch(text)
	if found == nil {
		return logLine{text: text}
	}
	l := logLine{level: found[1] + found[2], text: text[len(found[0]):]}
	// No digits, or too many: then the number is left out.
	l.pid, _ = strconv.Atoi(found[3])
	l.connection, _ = strconv.Atoi(found[4])
	return l
}

func slogLevel(level string) slog.Level {
	switch level {
	case "debug":
		return slog.LevelDebug
	case "info", "notice":
		return slog.LevelInfo
	case "warn":
		return slog.LevelWarn
	}
	return slog.LevelError
}

// isRoutine tells of notices whether they are what NGINX says at each start,
// reload and stop, of which the controller has its own word. What requests and
// Lua have to say is no such notice, nor is which stranger sent NGINX a signal.
func (l logLine) isRoutine() bool {
	return l.level == "notice" && l.connection == 0 && !strings.HasPrefix(l.text, "[lua]") && !l.isStrangersSignal()
}

// isStrangersSignal tells whether a signal came neither from this process nor
// from a child of NGINX.
func (l logLine) isStrangersSignal() bool {
	name, sender, ok := strings.Cut(l.text, " received from ")
	sender, _, _ = strings.Cut(sender, ",")
	return ok && strings.HasPrefix(name, "signal ") && !strings.HasSuffix(name, "(SIGCHLD)") && sender != strconv.Itoa(os.Getpid())
}

// An errorLog turns what NGINX writes to its error log into log lines.
type errorLog struct {
	log *slog.Logger
	// done is closed when the last process that could write has ended.
	done chan struct{}

	mu sync.Mutex
	// first is the first message about something that went wrong.
	first string
}

// follow reads until the end and closes r.
func follow(r io.ReadCloser, log *slog.Logger) *errorLog {
	e := &errorLog{log: log, done: make(chan struct{})}
	go func() {
		defer close(e.done)
		defer r.Close()
		lines := bufio.NewReaderSize(r, maxLine)
		level := slog.LevelWarn
		for {
			line, rest, err := lines.ReadLine()
			if err != nil {
				return
			}
			level = e.write(string(line), level)
			for rest && err == nil {
				_, rest, err = lines.ReadLine()
			}
		}
	}()
	return e
}

// write logs one line. One without a level has that of the line before.
func (e *errorLog) write(text string, before slog.Level) slog.Level {
	l := parseLine(text)
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
	case "emerg", "alert", "crit":
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

// reason is why NGINX did not start, as far as it said so.
func (e *errorLog) reason() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.first
}
