package logoutput_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/observe/logoutput"
)

// everything logs a message of each level.
func everything(log *slog.Logger) {
	log.Log(context.Background(), slog.Level(-9), "trace 9")
	log.Log(context.Background(), slog.Level(-6), "trace 6")
	log.Debug("debugging")
	log.Info("informing")
	log.Warn("warning")
	log.Error("failing")
}

// messages are the messages of a log, without all else.
func messages(text string) string {
	var list []string
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(line, "msg=")
		list = append(list, strings.Trim(strings.TrimSpace(rest), `"`))
	}
	return strings.Join(list, ",")
}

func modules(t *testing.T, text string) logoutput.Modules {
	t.Helper()
	var m logoutput.Modules
	if err := m.Set(text); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestVerbosity(t *testing.T) {
	const usual = "informing,warning,failing"
	for _, c := range []struct {
		verbosity int
		modules   string
		want      string
	}{
		{0, "", usual},
		{1, "", usual},
		{2, "", "debugging," + usual},
		{5, "", "debugging," + usual},
		{6, "", "trace 6,debugging," + usual},
		// Bodies of responses have private keys.
		{10, "", "trace 6,debugging," + usual},
		{0, "logoutput_test=2", "debugging," + usual},
		{0, "logoutput_test.go=2", "debugging," + usual},
		{0, "log*=9", "trace 6,debugging," + usual},
		{0, "other=9", usual},
		{0, "other=9,log*=2", "debugging," + usual},
		{2, "log*=1", "debugging," + usual},
		{0, "*/internal/observe/logoutput/*=2", usual},
	} {
		var out bytes.Buffer
		everything(logoutput.New(logoutput.Settings{Stderr: &out, Verbosity: c.verbosity, Modules: modules(t, c.modules)}))
		if got := messages(out.String()); got != c.want {
			t.Errorf("verbosity %d, modules %q: %s, want %s", c.verbosity, c.modules, got, c.want)
		}
	}
	if got := modules(t, "a=9,b=1").Capped().String(); got != "a=7,b=1" {
		t.Errorf("capped: %s", got)
	}
}

func TestLines(t *testing.T) {
	_, _, line, _ := runtime.Caller(0)
	var here logoutput.Place
	if err := here.Set(fmt.Sprintf("logoutput_test.go:%d", line+18)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		settings logoutput.Settings
		has, not string
	}{
		{logoutput.Settings{}, "level=INFO msg=message a=1 group.b=2", "stack="},
		{logoutput.Settings{JSON: true}, `"level":"INFO","msg":"message","a":1,"group":{"b":2}`, "stack"},
		{logoutput.Settings{NoHeaders: true}, "msg=message a=1 group.b=2", "level="},
		{logoutput.Settings{NoHeaders: true}, "msg=message a=1 group.b=2", "time="},
		{logoutput.Settings{Directory: true}, fmt.Sprintf("source=logoutput/logoutput_test.go:%d msg=message", line+18), "/internal/"},
		{logoutput.Settings{Backtrace: here}, "TestLines", "nothing"},
	} {
		var out bytes.Buffer
		c.settings.Stderr = &out
		logoutput.New(c.settings).With("a", 1).WithGroup("group").Info("message", "b", 2)
		if got := out.String(); !strings.Contains(got, c.has) || strings.Contains(got, c.not) {
			t.Errorf("%+v: got %s, want %q and not %q", c.settings, got, c.has, c.not)
		}
	}
}

func TestThreshold(t *testing.T) {
	for text, want := range map[string]string{
		"0": "informing,warning,failing", "INFO": "informing,warning,failing", "1": "warning,failing", "warning": "warning,failing",
		"2": "failing", "ERROR": "failing", "3": "", "FATAL": "",
	} {
		var threshold logoutput.Severity
		if err := threshold.Set(text); err != nil {
			t.Error(err)
		}
		var out bytes.Buffer
		everything(logoutput.New(logoutput.Settings{Stderr: &out, Threshold: threshold}))
		if got := messages(out.String()); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestFiles(t *testing.T) {
	for _, only := range []bool{false, true} {
		folder := t.TempDir()
		files, err := logoutput.OpenFolder(folder, "headgate", 0, only)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"INFO": "informing,warning,failing", "WARNING": "warning,failing", "ERROR": "failing"}
		if only {
			want = map[string]string{"INFO": "informing", "WARNING": "warning", "ERROR": "failing"}
		}
		var out bytes.Buffer
		everything(logoutput.New(logoutput.Settings{Stderr: &out, Threshold: logoutput.Fatal, Files: files}))
		if err := files.Close(time.Minute); err != nil {
			t.Error(err)
		}
		for severity, messagesOf := range want {
			if got := messages(read(t, filepath.Join(folder, "headgate."+severity))); got != messagesOf {
				t.Errorf("%s, only %v: %s, want %s", severity, only, got, messagesOf)
			}
		}
		if out.Len() > 0 {
			t.Errorf("standard error has %s", out.String())
		}
	}
	if _, err := logoutput.OpenFolder("/nowhere", "headgate", 0, false); err == nil {
		t.Error("a folder that does not exist is accepted")
	}
}

// TestFileIsBounded: a file is appended to, and emptied when it is full.
func TestFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for i, want := range []string{"a", "a,b", "c"} {
		files, err := logoutput.OpenFile(path, 120)
		if err != nil {
			t.Fatal(err)
		}
		logoutput.New(logoutput.Settings{Stderr: &bytes.Buffer{}, Files: files}).Info(string(rune('a' + i)))
		if err := files.Close(time.Minute); err != nil {
			t.Error(err)
		}
		if got := messages(read(t, path)); got != want {
			t.Errorf("after %d lines: %s, want %s", i+1, got, want)
		}
	}
}

// TestPipe: a pipe is never full.
func TestPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	files, err := logoutput.OpenFile(fmt.Sprintf("/proc/self/fd/%d", w.Fd()), 1)
	if err != nil {
		t.Fatal(err)
	}
	logoutput.New(logoutput.Settings{Stderr: &bytes.Buffer{}, Files: files}).Info("a")
	if err := errors.Join(files.Close(time.Minute), w.Close()); err != nil {
		t.Error(err)
	}
	text, err := io.ReadAll(r)
	if got := messages(string(text)); err != nil || got != "a" {
		t.Errorf("the pipe has %s, %v", got, err)
	}
}

func TestInvalidValues(t *testing.T) {
	var severity logoutput.Severity
	for _, text := range []string{"", "4", "-1", "warn", "INF"} {
		if severity.Set(text) == nil {
			t.Errorf("severity %q is accepted", text)
		}
	}
	var list logoutput.Modules
	for _, text := range []string{"a", "a=", "=1", "a=-1", "a=x", "[=1"} {
		if list.Set(text) == nil {
			t.Errorf("modules %q are accepted", text)
		}
	}
	var place logoutput.Place
	for _, text := range []string{"a", "a.go", "a.go:0", "a.go:x", ":7", "a:7"} {
		if place.Set(text) == nil {
			t.Errorf("place %q is accepted", text)
		}
	}
	if place.Set(":0") != nil || place.String() != ":0" || place.Set("a.go:7") != nil || place.String() != "a.go:7" {
		t.Errorf("valid places: %s", place)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
