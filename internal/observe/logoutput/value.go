package logoutput

import (
	"errors"
	"log/slog"
	"math"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// Levels beyond all that are used.
const (
	never  = slog.Level(math.MinInt32)
	always = slog.Level(math.MaxInt32)
)

// A Severity is a lowest severity, as the value of a flag: 0 to 3, or its name.
type Severity int

// The severities. No message has the last one, since no message ends the program.
const (
	Info Severity = iota
	Warning
	Error
	Fatal
)

func severityNames() []string { return []string{"INFO", "WARNING", "ERROR", "FATAL"} }

// String is the number.
func (s Severity) String() string { return strconv.Itoa(int(s)) }

// Type is the name of the type in help texts.
func (s Severity) Type() string { return "severity" }

// Set parses a number or a name.
func (s *Severity) Set(text string) error {
	for i, name := range severityNames() {
		if text == strconv.Itoa(i) || strings.EqualFold(text, name) {
			*s = Severity(i)
			return nil
		}
	}
	return errors.New("not a severity")
}

func (s Severity) level() slog.Level {
	return []slog.Level{never, slog.LevelWarn, slog.LevelError, always}[s]
}

// Modules are verbosities of source files: PATTERN=N, separated by commas.
type Modules []module

type module struct {
	pattern   string
	verbosity int
}

// String is what Set parses.
func (m Modules) String() string {
	var list []string
	for _, one := range m {
		list = append(list, one.pattern+"="+strconv.Itoa(one.verbosity))
	}
	return strings.Join(list, ",")
}

// Type is the name of the type in help texts.
func (m Modules) Type() string { return "moduleSpec" }

// Set parses the list. The empty text is an empty list.
func (m *Modules) Set(text string) error {
	*m = nil
	for item := range strings.SplitSeq(text, ",") {
		if item == "" {
			continue
		}
		pattern, number, _ := strings.Cut(item, "=")
		verbosity, err := strconv.ParseUint(number, 10, 31)
		if _, bad := path.Match(pattern, ""); err != nil || bad != nil || pattern == "" {
			return errors.New("not a list of modules")
		}
		*m = append(*m, module{strings.TrimSuffix(pattern, ".go"), int(verbosity)})
	}
	return nil
}

// Capped is the list with the verbosities that count.
func (m Modules) Capped() Modules {
	capped := make(Modules, len(m))
	for i, one := range m {
		capped[i] = module{one.pattern, Cap(one.verbosity)}
	}
	return capped
}

// level is the lowest level of a source file: that of the first pattern that matches its
// name, or its path if the pattern has a slash.
func (m Modules) level(file string) slog.Level {
	file = strings.TrimSuffix(file, ".go")
	for _, one := range m {
		name := file
		if !strings.Contains(one.pattern, "/") {
			name = path.Base(file)
		}
		if ok, _ := path.Match(one.pattern, name); ok {
			return levelOf(one.verbosity)
		}
	}
	return always
}

// A Place is a line of the source code: FILE:LINE, where FILE has no directory.
type Place struct {
	file string
	line int
}

// String is what Set parses, ":0" for no place.
func (p Place) String() string { return p.file + ":" + strconv.Itoa(p.line) }

// Type is the name of the type in help texts.
func (p Place) Type() string { return "traceLocation" }

// Set parses a place. The empty text and ":0" are none.
func (p *Place) Set(text string) error {
	if text == "" || text == ":0" {
		*p = Place{}
		return nil
	}
	file, number, _ := strings.Cut(text, ":")
	line, err := strconv.ParseUint(number, 10, 31)
	if err != nil || line == 0 || !strings.Contains(file, ".") {
		return errors.New("not a place")
	}
	*p = Place{file, int(line)}
	return nil
}

func (p Place) isSet() bool { return p.line > 0 }

func (p Place) is(frame runtime.Frame) bool {
	return p.isSet() && frame.Line == p.line && path.Base(frame.File) == p.file
}
