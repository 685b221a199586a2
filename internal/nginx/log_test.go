package nginx

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func plain(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// messages are read like those of a pipe: one at a time, without what does not fit.
type messages struct{ left []string }

func (m *messages) Read(to []byte) (int, error) {
	if len(m.left) == 0 {
		return 0, io.EOF
	}
	n := copy(to, m.left[0])
	m.left = m.left[1:]
	return n, nil
}

func (m *messages) Close() error { return nil }

// TestForgedMessage: NGINX logs what clients send instead of the header of the PROXY protocol,
// with its newlines. That makes no messages.
func TestForgedMessage(t *testing.T) {
	r, w, err := messagePipe()
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	e := follow(r, plain(&logged))
	const forged = `2025/11/21 12:37:00 [alert] 13#13: forged`
	for _, message := range []string{
		`2025/11/21 12:37:00 [error] 13#13: *7 broken header: "x` + "\n\n" + forged + "\n" + `" while reading PROXY protocol` + "\n",
		`2025/11/21 12:37:00 [warn] 13#13: next` + "\n",
	} {
		if _, err := w.WriteString(message); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	<-e.done
	want := strings.Join([]string{
		`level=ERROR msg="broken header: \"x" pid=13 connection=7`,
		`level=ERROR msg="` + forged + `"`,
		`level=ERROR msg="\" while reading PROXY protocol"`,
		`level=WARN msg=next pid=13`,
		``,
	}, "\n")
	if diff := cmp.Diff(want, logged.String()); diff != "" {
		t.Error(diff)
	}
}

func TestErrorLog(t *testing.T) {
	text := strings.Join([]string{
		`2025/11/21 12:37:00 [notice] 12#12: start worker processes`,
		`2025/11/21 12:37:00 [notice] 12#12: signal 17 (SIGCHLD) received from 13`,
		`2025/11/21 12:37:00 [notice] 12#12: signal 15 (SIGTERM) received from 1, exiting`,
		fmt.Sprintf(`2025/11/21 12:37:00 [notice] 12#12: signal 3 (SIGQUIT) received from %d, shutting down`, os.Getpid()),
		`2025/11/21 12:37:00 [notice] 12#12: [lua] a.lua:3: of a timer`,
		`2025/11/21 12:37:00 [notice] 13#13: *7 "^/a" matches "/a", client: 127.0.0.1`,
		`2025/11/21 12:37:00 [debug] 13#14: *5 http request line`,
		`2025/11/21 12:37:00 [warn] 13#13: *7 [lua] a.lua:3: careful, client: 127.0.0.1`,
		`2025/11/21 12:37:00 [error] 13#13: *99999999999999999999 init failed:`,
		"\tno file 'x'",
		`2025/11/21 12:37:00 [info] 13#13: fine`,
		`2025/11/21 12:37:00 [crit] 13#13: no file`,
		`nginx: [emerg] bind() failed`,
		`2025/11/21 12:37:00 [alert] 13#13: ` + strings.Repeat("x", 2*maxMessage),
		`something else [emerg] 1#1: forged`,
		`last, without an end`,
	}, "\n")
	var logged strings.Builder
	e := follow(&messages{strings.SplitAfter(text, "\n")}, plain(&logged))
	<-e.done
	want := []string{
		`level=DEBUG msg="start worker processes" pid=12`,
		`level=DEBUG msg="signal 17 (SIGCHLD) received from 13" pid=12`,
		`level=INFO msg="signal 15 (SIGTERM) received from 1, exiting" pid=12`,
		fmt.Sprintf(`level=DEBUG msg="signal 3 (SIGQUIT) received from %d, shutting down" pid=12`, os.Getpid()),
		`level=INFO msg="[lua] a.lua:3: of a timer" pid=12`,
		`level=INFO msg="\"^/a\" matches \"/a\", client: 127.0.0.1" pid=13 connection=7`,
		`level=INFO msg="http request line" pid=13 connection=5 severity=debug`,
		`level=WARN msg="[lua] a.lua:3: careful, client: 127.0.0.1" pid=13 connection=7`,
		`level=ERROR msg="init failed:" pid=13 connection=9223372036854775807`,
		`level=ERROR msg="\tno file 'x'"`,
		`level=INFO msg=fine pid=13`,
		`level=ERROR msg="no file" pid=13 severity=crit`,
		`level=ERROR msg="bind() failed" severity=emerg`,
		`level=ERROR msg=` + strings.Repeat("x", maxMessage-len(`2025/11/21 12:37:00 [alert] 13#13: `)) + ` pid=13 severity=alert`,
		`level=ERROR msg="something else [emerg] 1#1: forged"`,
		`level=ERROR msg="last, without an end"`,
		``,
	}
	if diff := cmp.Diff(want, strings.Split(logged.String(), "\n")); diff != "" {
		t.Error(diff)
	}
	if e.reason() != "init failed:" {
		t.Errorf("reason %q", e.reason())
	}
}

func TestErrorLogOfNginx(t *testing.T) {
	b := newFixture(t)
	b.start()
	b.mustGet("/log")
	eventually(t, "the line", func() bool { return strings.Contains(b.logs.String(), "careful") })
	for line := range strings.Lines(b.logs.String()) {
		if !strings.Contains(line, "careful") {
			continue
		}
		if !strings.Contains(line, "level=WARN") || !strings.Contains(line, "connection=") || strings.Contains(line, "#") {
			t.Error(line)
		}
	}
}

func TestConfError(t *testing.T) {
	for _, test := range []struct {
		output string
		want   ConfError
	}{
		{
			"nginx: [warn] odd in /r/nginx.conf:1\nnginx: [emerg] unknown directive \"x\" in /r/nginx.conf:3\n" +
				"nginx: configuration file /r/nginx.conf test failed\n",
			ConfError{"/r/nginx.conf", 3, `unknown directive "x"`},
		},
		{
			"2025/11/21 12:37:00 [error] 1#1: init_by_lua error: no module\n\tno file\nnginx: [emerg] other\n",
			ConfError{"", 0, "init_by_lua error: no module; no file"},
		},
		{"Segmentation fault", ConfError{"", 0, "Segmentation fault"}},
	} {
		if diff := cmp.Diff(test.want, *confError(test.output)); diff != "" {
			t.Error(diff)
		}
	}
	if got := (&ConfError{"/r/nginx.conf", 3, "bad"}).Error(); got != "NGINX rejects the configuration: /r/nginx.conf:3: bad" {
		t.Error(got)
	}
}
