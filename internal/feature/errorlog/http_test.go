package errorlog_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// refused is what NGINX writes at the level error about a dead backend.
const refused = "connect() failed"

func start(t *testing.T, keys ...string) *headgatetest.Instance {
	t.Helper()
	return headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("dead") + headgatetest.Endpoints("dead", "127.0.0.1:1") +
		headgatetest.Ingress("dead", "a.test", "/", "dead") + headgatetest.Config(keys...)})
}

// logs reports whether a log has the message about a path.
func logs(log, path string) bool {
	for line := range strings.Lines(log) {
		if strings.Contains(line, refused) && strings.Contains(line, "GET "+path+" ") {
			return true
		}
	}
	return false
}

// waitForLine asks until the message is there: at the level debug, NGINX drops messages that the
// controller does not read fast enough.
func waitForLine(t *testing.T, g *headgatetest.Instance, where string, log func() string, path string) {
	t.Helper()
	headgatetest.Eventually(t, where+" has the message about "+path, func() bool {
		g.Get("a.test", path).WantStatus(t, 502)
		return logs(log(), path)
	})
}

// TestPathAndLevel: messages go where the keys say, from the level on that they say.
func TestPathAndLevel(t *testing.T) {
	t.Parallel()
	// Not t.TempDir, which the workers' user can't enter; NGINX opens files before it has one.
	file := filepath.Join(t.TempDir(), "error.log")
	content := func() string {
		text, _ := os.ReadFile(file)
		return string(text)
	}
	g := start(t)
	waitForLine(t, g, "the controller's log", g.Log.String, "/first")
	g.Apply(headgatetest.Config("error-log-path: " + file))
	waitForLine(t, g, "the file", content, "/second")
	g.Apply(headgatetest.Config("error-log-path: "+file, "error-log-level: crit"))
	g.Get("a.test", "/third").WantStatus(t, 502)
	g.Apply(headgatetest.Config("error-log-level: emerg"))
	g.Get("a.test", "/fourth").WantStatus(t, 502)
	g.Apply(headgatetest.Config("error-log-level: debug"))
	waitForLine(t, g, "the controller's log", g.Log.String, "/fifth")
	headgatetest.Eventually(t, "the controller's log has what NGINX says at the level debug", func() bool {
		return regexp.MustCompile(`level=INFO msg="http request line: \\"GET /fifth .* severity=debug`).MatchString(g.Log.String())
	})
	g.Apply(headgatetest.Config("error-log-level: error"))
	waitForLine(t, g, "the controller's log", g.Log.String, "/sixth")
	for path, want := range map[string][2]bool{
		"/first": {true, false}, "/second": {false, true}, "/third": {false, false}, "/fourth": {false, false}, "/fifth": {true, false}, "/sixth": {true, false},
	} {
		if got := [2]bool{logs(g.Log.String(), path), logs(content(), path)}; got != want {
			t.Errorf("%s is in the controller's log and in the file: %v, want %v", path, got, want)
		}
	}
}

// TestBadPath: what NGINX can't open stops nothing, and a finding says so.
func TestBadPath(t *testing.T) {
	t.Parallel()
	g := start(t)
	for _, value := range []string{"/nowhere/at/all.log", t.TempDir(), "syslog:server=10.0.0.1:70000", "syslog:server=10.0.0.1,facility=none"} {
		g.Apply(headgatetest.Config("error-log-path: " + value))
		if want := `msg="invalid value \"` + value; !strings.Contains(g.Log.String(), want) {
			t.Errorf("no finding about error-log-path: %s", value)
		}
		path := "/" + strings.Trim(regexp.MustCompile(`\W+`).ReplaceAllString(value, "-"), "-")
		waitForLine(t, g, "the controller's log", g.Log.String, path)
	}
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
}

// TestSyslog: a server gets both logs, unless NGINX can't send to it.
func TestSyslog(t *testing.T) {
	t.Parallel()
	s := headgatetest.StartSyslog(t)
	_, port, _ := net.SplitHostPort(s.LocalAddr().String())
	file := filepath.Join(t.TempDir(), "error.log")
	g := start(t)
	g.Apply(headgatetest.Config("enable-syslog: true", "syslog-host: 127.0.0.1", "syslog-port: "+port, "error-log-path: "+file))
	waitForLine(t, g, "the syslog server", s.String, "/one")
	access := regexp.MustCompile(`<190>.* nginx: 127\.0\.0\.1 - - \[[^]]+\] "GET /one HTTP/1\.1" 502 `)
	headgatetest.Eventually(t, "the syslog server has the line of the request", func() bool { return access.MatchString(s.String()) })
	if _, err := os.Stat(file); err == nil || logs(g.Log.String(), "/one") {
		t.Error("the message is elsewhere, too")
	}
	g.Apply(headgatetest.Config("enable-syslog: true", "syslog-host: no.such.host.invalid", "syslog-port: "+port))
	if !strings.Contains(g.Log.String(), `\"no.such.host.invalid\" could not be tested yet, and will be again`) {
		t.Error("no finding about a name without an address")
	}
	waitForLine(t, g, "the controller's log", g.Log.String, "/two")
	g.Apply(headgatetest.Config("enable-syslog: true", "syslog-host: localhost", "syslog-port: "+port))
	waitForLine(t, g, "the syslog server", s.String, "/three")
	g.Apply(headgatetest.Config())
	waitForLine(t, g, "the controller's log", g.Log.String, "/four")
	if text := s.String(); strings.Contains(text, "/two") || strings.Contains(text, "/four") {
		t.Error("the syslog server got what is not for it")
	}
}
