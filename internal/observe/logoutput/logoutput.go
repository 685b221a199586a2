// Package logoutput writes the log: to standard error and to files, by the severity of
// each line and by the source file that it comes from.
//
// It must not know what is logged. Its settings are those of klog, the log of
// Kubernetes' own programs.
package logoutput

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
)

// Settings are how the log is written.
type Settings struct {
	// JSON is set for lines of JSON instead of text.
	JSON bool
	// Verbosity is the level of the whole log, and Modules those of single source files.
	Verbosity int
	Modules   Modules
	// Backtrace is the line of the source code whose messages have a stack.
	Backtrace Place
	// NoHeaders omits the time and the severity, and Directory adds the source file.
	NoHeaders, Directory bool

	// Stderr gets the lines with at least the severity Threshold.
	Stderr    io.Writer
	Threshold Severity
	// Files gets the lines by severity; nil for none.
	Files *Files
}

// maxVerbosity is the largest verbosity that counts. From 8 on, the client of the API
// server logs the bodies of responses, which have private keys.
const maxVerbosity = 7

// Cap is the verbosity that counts.
func Cap(verbosity int) int { return min(verbosity, maxVerbosity) }

// levelOf is the lowest level of a verbosity: that of the client of the API server for
// the same verbosity, but our own messages for debugging are all there from 2 on.
func levelOf(verbosity int) slog.Level {
	if verbosity < 2 {
		return slog.LevelInfo
	}
	return min(slog.LevelDebug, slog.Level(-Cap(verbosity)))
}

// New returns the log.
func New(s Settings) *slog.Logger {
	h := &handler{level: levelOf(s.Verbosity), modules: s.Modules, backtrace: s.Backtrace}
	h.lowest = h.level
	for _, m := range s.Modules {
		h.lowest = min(h.lowest, levelOf(m.verbosity))
	}
	h.outputs = append(h.outputs, output{s.Threshold.level(), always, s.form(s.Stderr)})
	if s.Files != nil {
		for _, f := range s.Files.open {
			h.outputs = append(h.outputs, output{f.from, f.below, s.form(f)})
		}
	}
	return slog.New(h)
}

// form returns the handler that writes lines.
func (s Settings) form(to io.Writer) slog.Handler {
	// What is not to be logged does not get here.
	options := &slog.HandlerOptions{Level: never, AddSource: s.Directory, ReplaceAttr: s.replace}
	if s.JSON {
		return slog.NewJSONHandler(to, options)
	}
	return slog.NewTextHandler(to, options)
}

// replace omits headers, and shortens the source to the directory and the file.
func (s Settings) replace(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch {
	case s.NoHeaders && (a.Key == slog.TimeKey || a.Key == slog.LevelKey):
		return slog.Attr{}
	case a.Key == slog.SourceKey:
		if source, ok := a.Value.Any().(*slog.Source); ok {
			dir, file := filepath.Split(source.File)
			a.Value = slog.StringValue(fmt.Sprintf("%s:%d", filepath.Join(filepath.Base(dir), file), source.Line))
		}
	}
	return a
}

// A handler passes records to outputs.
type handler struct {
	// level is that of the whole log, and lowest also counts the modules.
	level, lowest slog.Level
	modules       Modules
	backtrace     Place
	outputs       []output
}

// An output takes the records from one level to below another.
type output struct {
	from, below slog.Level
	handler     slog.Handler
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.lowest }

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < h.level || h.backtrace.isSet() {
		frame, _ := runtime.CallersFrames([]uintptr{r.PC}).Next()
		if r.Level < h.level && r.Level < h.modules.level(frame.File) {
			return nil
		}
		if h.backtrace.is(frame) {
			r = r.Clone()
			r.AddAttrs(slog.String("stack", string(debug.Stack())))
		}
	}
	for _, o := range h.outputs {
		if r.Level < o.from || r.Level >= o.below {
			continue
		}
		if err := o.handler.Handle(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func(o slog.Handler) slog.Handler { return o.WithAttrs(attrs) })
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return h.with(func(o slog.Handler) slog.Handler { return o.WithGroup(name) })
}

func (h *handler) with(change func(slog.Handler) slog.Handler) slog.Handler {
	changed := *h
	changed.outputs = slices.Clone(h.outputs)
	for i := range changed.outputs {
		changed.outputs[i].handler = change(changed.outputs[i].handler)
	}
	return &changed
}
