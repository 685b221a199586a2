package dataplane_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// masked hides what differs from run to run: times, ports, and lengths but those of backends.
func masked(line string) string {
	line = regexp.MustCompile(`\[\d\d/\w+/\d{4}[^\]]*\]`).ReplaceAllString(line, "[T]")
	line = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(line, "E")
	line = regexp.MustCompile(`" (\d{3}) \d+ "`).ReplaceAllString(line, `" $1 N "`)
	line = regexp.MustCompile(`" \d+ \d+\.\d{3} \[`).ReplaceAllString(line, `" L S [`)
	return regexp.MustCompile(`\b\d+\.\d{3}\b`).ReplaceAllString(line, "S")
}

// TestKindsOfRequestsInTheLog: each kind of request has one line, in the format of ingress-nginx.
func TestKindsOfRequestsInTheLog(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.log")
	arrived := make(chan struct{})
	slow := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	switching := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", r.Header.Get("Upgrade"))
		w.WriteHeader(http.StatusSwitchingProtocols)
	}))
	short := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	refusing := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	dead := deadAddress(t)
	var connections atomic.Int32
	of := headgatetest.Ingress
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, AccessLog: file, Timing: headgatetest.Hasty(), Manifests: served("a", short) + served("b", short) +
		served("slow", slow) + served("switching", switching) + served("dead", dead) + headgatetest.Service("empty") + headgatetest.Endpoints("empty") +
		served("grpc", startH2C(t, &connections, http.HandlerFunc(answerGRPC))) + usersSecret +
		of("web", "web.test", "/", "a") + of("canary", "web.test", "/", "b", "canary: true", "canary-by-header: X-Canary") +
		of("redirect", "redirect.test", "/", "a", "permanent-redirect: https://b.test/") + of("force", "force.test", "/", "a", "force-ssl-redirect: true") +
		of("list", "list.test", "/", "a", "denylist-source-range: 127.0.0.0/8") + of("basic", "basic.test", "/", "a", "auth-type: basic", "auth-secret: users") +
		of("asked", "asked.test", "/", "a", "auth-url: http://"+refusing+"/") + of("mirrored", "mirrored.test", "/", "a", "mirror-target: http://"+short+"/") +
		of("limited", "limited.test", "/", "a", "limit-rps: 1", "limit-burst-multiplier: 1") + of("small", "small.test", "/", "a", "proxy-body-size: 1k") +
		of("denied", "denied.test", "/", "a", "auth-type: basic") + of("dead", "dead.test", "/", "dead", "proxy-next-upstream: off") + of("empty", "empty.test", "/", "empty") +
		of("slow", "slow.test", "/", "slow") + of("late", "late.test", "/", "slow", "proxy-read-timeout: 1", "proxy-next-upstream: off") +
		of("switching", "switching.test", "/", "switching") + of("grpc", "grpc.test", "/", "grpc", "backend-protocol: GRPC") + of("below", "below.test", "/a/", "a") +
		headgatetest.Config("enable-access-log-for-default-backend: true")})
	n := 0
	// want compares the line that a request has.
	want := func(line string, ask func(id string)) {
		t.Helper()
		n++
		id := fmt.Sprintf("kind-%d", n)
		ask(id)
		logged(t, file, id)
		if got := masked(logLineOf(t, file, id)); got != "127.0.0.1 - "+line+" "+id {
			t.Errorf("got  %s\nwant 127.0.0.1 - %s %s", got, line, id)
		}
	}
	get := func(host string, status int, headers ...string) func(string) {
		return func(id string) {
			h := http.Header{"X-Request-Id": {id}, "User-Agent": {"me"}}
			for i := 0; i < len(headers); i += 2 {
				h.Set(headers[i], headers[i+1])
			}
			g.Do(headgatetest.Request{Host: host, Path: "/a", Header: h}).WantStatus(t, status)
		}
	}
	const answered = `E 2 S 200`
	row := func(status, backend, canary, rest string) string {
		return fmt.Sprintf(`- [T] "GET /a HTTP/1.1" %s N "-" "me" L S [%s] [%s] %s`, status, backend, canary, rest)
	}
	want(row("200", "default-a-80", "", answered), get("web.test", 200))
	want(row("200", "default-a-80", "default-b-80", answered), get("web.test", 200, "X-Canary", "always"))
	want(row("200", "default-a-80", "", answered), get("mirrored.test", 200))
	want(row("301", "default-a-80", "", "- - - -"), get("redirect.test", 301))
	want(row("308", "default-a-80", "", "- - - -"), get("force.test", 308))
	want(row("301", "default-a-80", "", "- - - -"), get("below.test", 301))
	want(row("403", "default-a-80", "", "- - - -"), get("list.test", 403))
	want(row("401", "default-a-80", "", "- - - -"), get("basic.test", 401))
	want(strings.Replace(row("200", "default-a-80", "", answered), "- [T]", "user [T]", 1), get("basic.test", 200, "Authorization", password.Get("Authorization")))
	want(row("401", "default-a-80", "", "- - - -"), get("asked.test", 401))
	want(row("503", "default-a-80", "", "- - - -"), get("denied.test", 503))
	want(row("502", "default-dead-80", "", "E 0 S 502"), get("dead.test", 502))
	want(row("503", "default-empty-80", "", "- - - -"), get("empty.test", 503))
	want(row("404", "upstream-default-backend", "", "- - - -"), get("unknown.test", 404))
	want(row("200", "default-a-80", "", answered), get("limited.test", 200))
	want(row("504", "default-slow-80", "", "E 0 S 504"), func(id string) {
		go func() { <-arrived }()
		get("late.test", 504)(id)
	})
	want(`- [T] "GET / HTTP/1.1" 499 N "-" "-" L S [default-slow-80] [] E 0 S -`, func(id string) {
		gone := headgatetest.Dial(t, g.HTTP)
		fmt.Fprintf(gone, "GET / HTTP/1.1\r\nHost: slow.test\r\nX-Request-ID: %s\r\n\r\n", id)
		<-arrived
		gone.Close()
	})
	want(`- [T] "GET / HTTP/1.1" 101 N "-" "-" L S [default-switching-80] [] E 0 S 101`, func(id string) {
		upgrade := headgatetest.Dial(t, g.HTTP)
		fmt.Fprintf(upgrade, "GET / HTTP/1.1\r\nHost: switching.test\r\nX-Request-ID: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", id)
		if _, err := io.ReadFull(upgrade, make([]byte, len("HTTP/1.1 101"))); err != nil {
			t.Fatal(err)
		}
		upgrade.Close()
	})
	want(`- [T] "POST /pkg.Service/Method HTTP/2.0" 200 N "-" "me" L S [default-grpc-80] [] E 39 S 200`, func(id string) {
		g.Do(headgatetest.Request{
			Method: "POST", Scheme: "https", HTTP2: true, Host: "grpc.test", Path: "/pkg.Service/Method", Body: strings.NewReader("\x00\x00\x00\x00\x04ping"),
			Header: http.Header{"Te": {"trailers"}, "Content-Type": {"application/grpc"}, "X-Request-Id": {id}, "User-Agent": {"me"}},
		}).WantStatus(t, 200)
	})
	want(`- [T] "POST /a HTTP/1.1" 413 N "-" "me" L S [default-a-80] [] - - - -`, func(id string) {
		g.Do(headgatetest.Request{Method: "POST", Host: "small.test", Path: "/a", Body: strings.NewReader(strings.Repeat("x", 2000)), Header: http.Header{"X-Request-Id": {id}, "User-Agent": {"me"}}}).WantStatus(t, 413)
	})
	content, err := os.ReadFile(file)
	if lines := strings.Count(string(content), "\n"); err != nil || lines != n {
		t.Errorf("%v, %d lines for %d requests: calls of Headgate's own must have none\n%s", err, lines, n, content)
	}
}

// logLineOf is the line that ends with an id and is there.
func logLineOf(t *testing.T, file, id string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSuffix(line, "\n"); strings.HasSuffix(line, " "+id) {
			return line
		}
	}
	return ""
}

// TestRetriesAndRefusalsInTheLog: a request that a second endpoint answered has the values of both
// in its line, and one that a limit refused has none of an endpoint.
func TestRetriesAndRefusalsInTheLog(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "access.log")
	short := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, AccessLog: file, Timing: headgatetest.Hasty(), Manifests: served("half", short, deadAddress(t)) + served("a", short) +
		headgatetest.Ingress("retried", "retried.test", "/", "half") + headgatetest.Ingress("limited", "limited.test", "/", "a", "limit-rps: 1", "limit-burst-multiplier: 1")})
	for host, row := range map[string]struct{ usual, wanted string }{
		"retried.test": {`200 N "-" "me" L S [default-half-80] [] E 2 S 200`, `200 N "-" "me" L S [default-half-80] [] E, E 0, 2 S, S 502, 200`},
		"limited.test": {`200 N "-" "me" L S [default-a-80] [] E 2 S 200`, `503 N "-" "me" L S [default-a-80] [] - - - -`},
	} {
		n := 0
		headgatetest.Eventually(t, host+" has a line with "+row.wanted, func() bool {
			n++
			id := fmt.Sprintf("%s-%d", host, n)
			g.Do(headgatetest.Request{Host: host, Path: "/a", Header: http.Header{"X-Request-Id": {id}, "User-Agent": {"me"}}})
			logged(t, file, id)
			line := func(rest string) string { return `127.0.0.1 - - [T] "GET /a HTTP/1.1" ` + rest + " " + id }
			got := masked(logLineOf(t, file, id))
			if got != line(row.usual) && got != line(row.wanted) {
				t.Fatalf("got  %s\nwant %s\nor   %s", got, line(row.usual), line(row.wanted))
			}
			return got == line(row.wanted)
		})
	}
}
