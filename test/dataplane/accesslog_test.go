package dataplane_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// logLine is ingress-nginx's default format.
var logLine = regexp.MustCompile(`^(?P<addr>\S+) - (?P<user>.*?) \[(?P<time>[^\]]+)\] "(?P<request>[^"]*)" (?P<status>\d+) (?P<bytes>\d+) ` +
	`"(?P<referer>[^"]*)" "(?P<agent>[^"]*)" (?P<length>\d+) (?P<took>\d+\.\d{3}) \[(?P<upstream>[^\]]*)\] \[(?P<alternative>[^\]]*)\] ` +
	`(?P<endpoint>\S+(?:, \S+)*) (?P<answer>\S+(?:, \S+)*) (?P<waited>\S+(?:, \S+)*) (?P<statuses>\S+(?:, \S+)*) (?P<id>\S+)$`)

// logged waits for the log line of the request with the id, and parses it.
func logged(t *testing.T, file, id string) map[string]string {
	t.Helper()
	var line string
	headgatetest.Eventually(t, "the log has the request "+id, func() bool {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(content)) {
			if strings.HasSuffix(l, " "+id+"\n") {
				line = strings.TrimSuffix(l, "\n")
			}
		}
		return line != ""
	})
	found := logLine.FindStringSubmatch(line)
	if found == nil {
		t.Fatalf("a line of another format: %s", line)
	}
	fields := map[string]string{}
	for i, name := range logLine.SubexpNames()[1:] {
		fields[name] = found[i+1]
	}
	return fields
}

func TestAccessLog(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.log")
	wire := startWire(t, "")
	dead := deadAddress(t)
	g := headgatetest.Start(t, headgatetest.Options{AccessLog: file, Timing: headgatetest.Hasty(), Manifests: served("a", wire.address) +
		headgatetest.Ingress("plain", "plain.test", "/", "a") + headgatetest.Ingress("named", "named.test", "/", "a", "proxy-body-size: 3m") +
		ruled("port", "port.test Prefix / a http") + headgatetest.Ingress("none", "none.test", "/", "missing") +
		headgatetest.Ingress("dead", "dead.test", "/", "dead") + served("dead", dead) +
		headgatetest.Ingress("slash", "slash.test", "/foo/", "a") + headgatetest.Ingress("force", "force.test", "/", "a", "force-ssl-redirect: true") +
		headgatetest.Config("enable-access-log-for-default-backend: true")})
	for i, c := range []struct {
		host, upstream, endpoint string
		path                     string
		status                   int
	}{
		{"plain.test", "default-a-80", wire.address, "/", 200},
		{"named.test", "default-a-80", wire.address, "/", 200},
		{"port.test", "default-a-http", wire.address, "/", 200},
		{"none.test", "default-missing-80", "-", "/", 503},
		{"dead.test", "default-dead-80", dead, "/", 502},
		{"unknown.test", "upstream-default-backend", "-", "/", 404},
		{"force.test", "default-a-80", "-", "/", 308},
	} {
		t.Run(c.host, func(t *testing.T) {
			t.Parallel()
			id := "row-" + strconv.Itoa(i)
			header := http.Header{"X-Request-Id": {id}, "Referer": {"http://from/"}, "User-Agent": {"me/1"}, "Authorization": {"Basic dXNlcjpwYXNz"}}
			r := g.Do(headgatetest.Request{Host: c.host, Path: "/x?y=1", Header: header}).WantStatus(t, c.status)
			f := logged(t, file, id)
			if _, err := time.Parse("02/Jan/2006:15:04:05 -0700", f["time"]); err != nil {
				t.Errorf("time: %v", err)
			}
			if n, err := strconv.Atoi(f["length"]); err != nil || n < len(id) {
				t.Errorf("request length %q", f["length"])
			}
			asked := c.endpoint != "-"
			if asked != (f["waited"] != "-") || asked != (f["statuses"] != "-") || asked != (f["answer"] != "-") {
				t.Errorf("of the endpoint: answer %q, waited %q, status %q", f["answer"], f["waited"], f["statuses"])
			}
			if length := strconv.Itoa(len(r.Body)); c.status == 200 && (f["answer"] != length || f["statuses"] != "200") {
				t.Errorf("answer %q, status %q; the body has %s bytes", f["answer"], f["statuses"], length)
			}
			for name, want := range map[string]string{
				"addr": "127.0.0.1", "user": "user", "request": "GET /x?y=1 HTTP/1.1", "status": strconv.Itoa(c.status), "bytes": strconv.Itoa(len(r.Body)),
				"referer": "http://from/", "agent": "me/1", "upstream": c.upstream, "alternative": "", "endpoint": c.endpoint, "id": id,
			} {
				if got := strings.Split(f[name], ", ")[0]; got != want {
					t.Errorf("%s is %q, want %q", name, f[name], want)
				}
			}
		})
	}
	t.Run("a made id, and HTTP/2", func(t *testing.T) {
		t.Parallel()
		r := g.Do(headgatetest.Request{Scheme: "https", HTTP2: true, Host: "plain.test", Path: "/h2"})
		f := logged(t, file, sentHeader(r.Body).Get("X-Request-Id"))
		if f["request"] != "GET /h2 HTTP/2.0" || f["status"] != "200" || f["user"] != "-" || f["referer"] != "-" {
			t.Errorf("got %v", f)
		}
	})
	t.Run("line ends and quotes are escaped", func(t *testing.T) {
		t.Parallel()
		r := askRaw(t, g, "GET /\"%0d%0a HTTP/1.1\r\nHost: plain.test\r\nX-Request-ID: forged\r\n"+
			"User-Agent: a\"b\x01\x7f\r\nReferer: x\\\r\nConnection: close\r\n\r\n")
		if r.Status != 200 && r.Status != 400 {
			t.Errorf("status %d", r.Status)
		}
		f := logged(t, file, "forged")
		if f["request"] != `GET /\x22%0d%0a HTTP/1.1` || f["agent"] != `a\x22b\x01\x7F` || f["referer"] != `x\x5C` {
			t.Errorf("got %v", f)
		}
	})
}

func TestAccessLogCanBeDisabled(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.log")
	g := headgatetest.Start(t, headgatetest.Options{AccessLog: file, Timing: headgatetest.Hasty(), Manifests: served("a", startWire(t, "").address) +
		headgatetest.Ingress("plain", "plain.test", "/", "a") + headgatetest.Ingress("named", "named.test", "/", "a", "proxy-body-size: 3m") +
		headgatetest.Config("disable-access-log: true", "enable-access-log-for-default-backend: true")})
	hosts := []string{"plain.test", "named.test", "unknown.test"}
	ask := func(id string) {
		for _, host := range hosts {
			g.Do(headgatetest.Request{Host: host, Header: http.Header{"X-Request-Id": {id + host}}})
		}
	}
	ask("before-")
	g.ApplyReloading(headgatetest.Config("enable-access-log-for-default-backend: true"))
	ask("after-")
	for _, host := range hosts {
		logged(t, file, "after-"+host)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(content), "\n"); n != len(hosts) {
		t.Errorf("requests were logged while the log was off:\n%s", content)
	}
}
