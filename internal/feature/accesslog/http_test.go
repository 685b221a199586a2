package accesslog_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A logged is an instance whose log is a file.
type logged struct {
	*headgatetest.Instance
	t    *testing.T
	file string
	last int
}

// start serves web.test and unlogged.test with one worker, which writes lines in the order in
// which requests end.
func start(t *testing.T, manifests string, keys ...string) *logged {
	t.Helper()
	l := &logged{t: t, file: filepath.Join(t.TempDir(), "access.log")}
	l.Instance = headgatetest.Start(t, headgatetest.Options{Workers: 1, AccessLog: l.file, Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("a") +
		headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) + headgatetest.Ingress("web", "web.test", "/", "a") + manifests + headgatetest.Config(keys...)})
	return l
}

// linesIn are the lines of a file, once one has the text.
func linesIn(t *testing.T, file, text string) []string {
	t.Helper()
	var lines []string
	headgatetest.Eventually(t, file+" has "+text, func() bool {
		content, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		all := string(content)
		lines = strings.Split(strings.TrimSuffix(all, "\n"), "\n")
		return strings.Contains(all, text) && strings.HasSuffix(all, "\n")
	})
	return lines
}

// line asks for a path and returns the line, empty if there is none though a later request
// has one.
func (l *logged) line(host, path string) string {
	l.t.Helper()
	l.last++
	mark := fmt.Sprintf("mark-%d-", l.last)
	l.Do(headgatetest.Request{Host: host, Path: path, Header: http.Header{"User-Agent": {mark}}})
	l.Do(headgatetest.Request{Host: "web.test", Header: http.Header{"User-Agent": {"after-" + mark}}})
	for _, line := range linesIn(l.t, l.file, "after-"+mark) {
		if strings.Contains(line, mark) && !strings.Contains(line, "after-"+mark) {
			return line
		}
	}
	return ""
}

// Each key and the annotation has an effect on the next request.
func TestKeysChangeLive(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	l := start(t, "")
	has := func(want bool, host, path, text string) {
		t.Helper()
		if line := l.line(host, path); want != (line != "") || !strings.Contains(line, text) {
			t.Errorf("%s%s: the line is %q, and %q in it: want %v", host, path, line, text, want)
		}
	}
	reloads := func() int { return l.Value(l.Metrics.Reloads) }
	has(true, "web.test", "/x", `"GET /x HTTP/1.1" 200`)

	before := reloads()
	l.Apply(headgatetest.Ingress("web2", "web2.test", "/", "a", "enable-access-log: false"))
	for range 3 {
		has(false, "web2.test", "/x", "")
	}
	l.Apply(headgatetest.Ingress("web2", "web2.test", "/", "a", "enable-access-log: true"))
	has(true, "web2.test", "/x", `"GET /x HTTP/1.1" 200`)
	has(false, "unknown.test", "/x", "")
	l.Apply(headgatetest.Config("enable-access-log-for-default-backend: true"))
	has(true, "unknown.test", "/x", `"GET /x HTTP/1.1" 404`)
	has(false, "unknown.test", "/healthz", "")
	if n := reloads() - before; n != 0 {
		t.Errorf("%d reloads for what concerns routes alone", n)
	}

	l.ApplyReloading(headgatetest.Config("skip-access-log-urls: /skip?a=1,~^/[0-9]+$,~*\\.PNG,/" + strings.Repeat("long/", 20)))
	for _, path := range []string{"/skip?a=1", "/SKIP?a=1", "/123", "/a.png", "/" + strings.Repeat("long/", 20)} {
		has(false, "web.test", path, "")
	}
	for _, path := range []string{"/skip", "/skip?a=12", "/123/", "/a.jpg", "/" + strings.Repeat("long/", 20) + "x"} {
		has(true, "web.test", path, "GET "+path+" ")
	}
	// The longest in nginx.conf that there is.
	l.ApplyReloading(headgatetest.Config("skip-access-log-urls: /" + strings.Repeat(`\`, 999)))
	has(true, "web.test", "/skip", "GET /skip ")
	// As many as there may be, and the longest.
	var urls []string
	for i := range 999 {
		urls = append(urls, fmt.Sprintf("/%s/%d", strings.Repeat("Long", i%30), i))
	}
	urls = append(urls, "/"+strings.Repeat("x", 999))
	l.ApplyReloading(headgatetest.Config("skip-access-log-urls: " + strings.Join(urls, ",")))
	for _, i := range []int{0, 29, 30, 998, 999} {
		has(false, "web.test", urls[i], "")
		has(true, "web.test", urls[i]+"x", "x HTTP/1.1")
	}
	if strings.Contains(l.Log.String(), "could not build optimal") {
		t.Error("NGINX has no table for so many")
	}
	l.ApplyReloading(headgatetest.Config(`log-format-upstream: $http_user_agent "$arg_x" it\'s`))
	has(true, "web.test", `/?x=a"b`, `"a\x22b" it's`)
	// Longer than a parameter of NGINX, and longer still with the names that stand for these variables.
	l.ApplyReloading(headgatetest.Config("log-format-upstream: $http_user_agent $request " + strings.Repeat("$namespace ", 1000)))
	has(true, "web.test", "/", strings.Repeat(" default", 1000))
	l.ApplyReloading(headgatetest.Config(`log-format-upstream: $http_user_agent "$arg_x" it's`, "log-format-escape-json: true"))
	has(true, "web.test", `/?x=a"b`, `"a\"b" it's`)
	l.ApplyReloading(headgatetest.Config(`log-format-upstream: $http_user_agent "$arg_x" it's`, "log-format-escape-json: true", "log-format-escape-none: true"))
	has(true, "web.test", `/?x=a"b`, `"a"b" it's`)

	other, third := filepath.Join(filepath.Dir(l.file), "other.log"), filepath.Join(filepath.Dir(l.file), "third.log")
	first := l.file
	l.ApplyReloading(headgatetest.Config("access-log-path: " + other))
	l.file = other
	has(true, "web.test", "/other", "GET /other ")
	l.ApplyReloading(headgatetest.Config("access-log-path: "+other, "http-access-log-path: "+third, "access-log-params: buffer=4k flush=1ms"))
	l.file = third
	has(true, "web.test", "/third", "GET /third ")
	for _, key := range []string{"disable-access-log: true", "disable-http-access-log: true"} {
		l.ApplyReloading(headgatetest.Config(key))
		l.Get("web.test", "/off").WantStatus(t, 200)
		l.ApplyReloading(headgatetest.Config())
		l.file = first
		has(true, "web.test", "/on", "GET /on ")
		if content, err := os.ReadFile(first); err != nil || strings.Contains(string(content), "GET /off ") {
			t.Errorf("%s: %v, the log has\n%s", key, err, content)
		}
	}
}

// What NGINX would not take is reported, and not used.
func TestValuesThatNGINXRejects(t *testing.T) {
	t.Parallel()
	l := start(t, "")
	for _, c := range []struct{ key, finding string }{
		{"log-format-upstream: $remote_addr $geoip2_city_name", "NGINX does not have the variable $geoip2_city_name"},
		{"access-log-path: /no/such/folder/a.log", "invalid value \\\"/no/such/folder/a.log\\\": NGINX rejects the configuration:"},
		{"access-log-params: flush=1s", "invalid value \\\"flush=1s\\\": NGINX rejects the configuration:"},
		{"access-log-path: syslog:server=192.0.2.1,facility=nowhere", "NGINX rejects the configuration:"},
		{"http-access-log-path: syslog:server=name.invalid", "NGINX can't test it: host not found in syslog server"},
	} {
		name, _, _ := strings.Cut(c.key, ": ")
		code, effect := finding.InvalidValue, "the setting has no effect"
		if name == "log-format-upstream" {
			effect = "using the default"
		}
		if strings.Contains(c.key, "name.invalid") {
			code = finding.Waits // A name may have an address later.
		}
		l.Apply(headgatetest.Config(c.key))
		headgatetest.Eventually(t, "a finding about "+c.key, func() bool {
			for line := range strings.Lines(l.Log.String()) {
				if strings.Contains(line, "field="+name+" ") && strings.Contains(line, c.finding) && strings.Contains(line, "code="+string(code)+" effect=\""+effect+"\"") {
					return true
				}
			}
			return false
		})
		if line := l.line("web.test", "/default"); !strings.Contains(line, `"GET /default HTTP/1.1" 200`) {
			t.Errorf("%s: the line is %q", c.key, line)
		}
	}
	// Options that a file takes are not for a syslog server.
	l.Apply(headgatetest.Config("access-log-path: syslog:server=192.0.2.1", "access-log-params: buffer=4k"))
	headgatetest.Eventually(t, "a finding about the options", func() bool { return strings.Contains(l.Log.String(), "invalid value \\\"buffer=4k\\\"") })
}

// All variables that users of ingress-nginx have in their formats.
func TestVariables(t *testing.T) {
	t.Parallel()
	names := strings.Fields("namespace ingress_name service_name service_port location_path proxy_upstream_name proxy_alternative_upstream_name proxy_host server_name " +
		"req_id request_id the_real_ip best_http_host pass_access_scheme pass_port pass_server_port full_x_forwarded_for connection_upgrade balancer_ewma_score " +
		"remote_addr remote_user remote_port time_local time_iso8601 msec request request_uri uri args is_args query_string request_method request_length request_time status bytes_sent " +
		"body_bytes_sent http_user_agent http_x_forwarded_for http_cf_ray cookie_session arg_q sent_http_content_type host http_host scheme server_protocol server_port server_addr " +
		"upstream_addr upstream_status upstream_response_time upstream_response_length upstream_connect_time upstream_header_time upstream_http_date upstream_bytes_received " +
		"upstream_bytes_sent upstream_cache_status ssl_protocol ssl_cipher ssl_server_name ssl_session_reused ssl_client_s_dn ssl_client_verify ssl_preread_none connection " +
		"connection_requests connection_time pipe pid hostname nginx_version content_type content_length gzip_ratio proxy_protocol_addr realip_remote_addr proxy_add_x_forwarded_for " +
		"http2 request_completion tcpinfo_rtt limit_rate document_uri request_filename nonexistent")
	// Two that NGINX does not have, to be found by name.
	names = names[:len(names)-1]
	var parts []string
	for _, name := range names {
		if name != "ssl_preread_none" {
			parts = append(parts, fmt.Sprintf("%q: \"$%s\"", name, name))
		}
	}
	format := "log-format-upstream: {" + strings.Join(parts, ", ") + "}"
	l := start(t, headgatetest.Ingress("jumps", "jumps.test", "/in/", "a", "proxy-body-size: 3m")+headgatetest.Ingress("regex", "regex.test", "/r/[a-z]+", "a", "use-regex: true")+
		headgatetest.Ingress("redirect", "redirect.test", "/", "a", "permanent-redirect: https://b.test/")+headgatetest.Ingress("denied", "denied.test", "/", "a", "auth-type: basic")+
		headgatetest.Ingress("later", "web.test", "/", "a", "canary: true", "canary-by-header: X-Canary")+
		headgatetest.Ingress("bare", "bare.test", "/", "a", "from-to-www-redirect: true"),
		format, "log-format-escape-json: true", "enable-access-log-for-default-backend: true")
	for _, c := range []struct {
		host, path string
		want       string
	}{
		{"web.test", "/a/b?q=%22x", "default web a 80 / default-a-80  web.test 200"},
		{"web.test", "/again", "default web a 80 / default-a-80  web.test 200"},
		{"jumps.test", "/in/x", "default jumps a 80 /in/ default-a-80  jumps.test 200"},
		{"jumps.test", "/in", "default jumps a 80 /in/ default-a-80  jumps.test 301"},
		{"jumps.test", "/out", "default jumps   / upstream-default-backend  jumps.test 404"},
		{"regex.test", "/r/abc", "default regex a 80 /r/[a-z]+ default-a-80  regex.test 200"},
		{"redirect.test", "/", "default redirect a 80 / default-a-80  redirect.test 301"},
		{"denied.test", "/", "default denied a 80 / default-a-80  denied.test 503"},
		{"unknown.test", "/", "    / upstream-default-backend  _ 404"},
		{"www.bare.test", "/", "        308"},
	} {
		var f map[string]string
		line := l.line(c.host, c.path)
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatalf("%s%s: %v: %q", c.host, c.path, err, line)
		}
		got := strings.Join([]string{
			f["namespace"], f["ingress_name"], f["service_name"], f["service_port"], f["location_path"], f["proxy_upstream_name"], f["proxy_alternative_upstream_name"], f["server_name"], f["status"],
		}, " ")
		if got != c.want {
			t.Errorf("%s%s: got %q, want %q", c.host, c.path, got, c.want)
		}
		same := []string{"the_real_ip remote_addr", "full_x_forwarded_for remote_addr", "proxy_host proxy_upstream_name", "pass_access_scheme scheme", "best_http_host http_host", "req_id request_id"}
		for _, pair := range same {
			a, b, _ := strings.Cut(pair, " ")
			if f[a] != f[b] || f[a] == "" && f["namespace"] != "" {
				t.Errorf("%s%s: $%s is %q and $%s %q", c.host, c.path, a, f[a], b, f[b])
			}
		}
		if f["pass_port"] != f["pass_server_port"] || f["balancer_ewma_score"] != "-1" || f["host"] != c.host {
			t.Errorf("%s%s: %q", c.host, c.path, line)
		}
	}
}

// Clients can't write lines of their own, nor break a line of JSON.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	l := start(t, "", `log-format-upstream: {"agent": "$http_user_agent", "uri": "$uri", "request": "$request", "user": "$remote_user", "arg": "$arg_x", "cookie": "$cookie_c", "host": "$host", "x": "$http_x_any", "long": "$http_x_1$http_x_2$http_x_3$http_x_4"}`,
		"log-format-escape-json: true")
	bad := "\"}\\\t\x01\x1f\x7f\x80\xff\xc3\x28{\"forged\": \"1"
	// Each of the four buffers of 8 KiB that NGINX has for a request holds one long header, the
	// last one the others too. These 31 KB are 125 KB when they are escaped.
	longest := "GET /longest HTTP/1.1"
	for i, size := range []int{8100, 8100, 8100, 7000} {
		longest += fmt.Sprintf("\r\nX-%d: %s", i+1, strings.Repeat("\x01\"", size/2))
	}
	longest += "\r\nHost: web.test"
	raw := func(user string) []string {
		return []string{
			"GET /%0a%0d%22%00x HTTP/1.1", // refused
			"GET /%0aforged%0d%22%5c%7d?x=%0a\"" + bad[:3] + " HTTP/1.1\r\nHost: web.test\r\nUser-Agent: " + bad + "\r\nCookie: c=" + bad + "\r\nX-Any: " + bad + "\r\nAuthorization: Basic " + user,
			"GET /\xff\xfe\"?x=\x80\" HTTP/1.1\r\nHost: web.test",
			"GET / HTTP/1.1\r\nHost: we\"b}.test",
			"GET / HTTP/1.1\r\nHost: web.test\r\nX-Any: " + strings.Repeat("\x01\"\\", 7900/3),
			"GET / HTTP/1.1\r\nHost: web.test\r\nX-Any: " + strings.Repeat("x\"", 32<<10),
			longest,
			"\x16\x03\x01 not HTTP \"\n forged",
			"FORGED\n\n",
		}
	}
	for _, text := range raw("Cgp7ImZvcmdlZCI6IDF9Cjp4") { // "\n\n{\"forged\": 1}\n:x"
		exchange(t, l.HTTP, text+"\r\nConnection: close\r\n\r\n")
	}
	l.Do(headgatetest.Request{Scheme: "https", HTTP2: true, Host: "web.test", Path: "/h2?x=%22", Header: http.Header{"X-Any": {"\"\\\t\xff"}}}).WantStatus(t, 200)
	if line := l.line("web.test", "/last"); line == "" {
		t.Error("the last request has no line")
	}
	lines := linesIn(t, l.file, "/last")
	if len(lines) < 9 {
		t.Errorf("%d lines", len(lines))
	}
	whole := 0
	for _, line := range lines {
		var f map[string]string
		if err := json.Unmarshal([]byte(line), &f); err != nil || f["forged"] != "" || len(f) != 9 {
			t.Errorf("%v: %q", err, line)
		}
		if f["request"] == "GET /longest HTTP/1.1" && len(f["long"]) == 8100*3+7000 {
			whole++
		}
	}
	if whole != 1 {
		t.Errorf("%d lines have the longest headers in whole, want 1", whole)
	}
	if all := strings.Join(lines, "\n"); !strings.Contains(all, `\u000aforged\u000d\"\\}`) && !strings.Contains(all, `\nforged\r\"\\}`) {
		t.Errorf("the decoded path is not in\n%s", all)
	}
}

// exchange sends bytes and waits until the server ends the connection.
func exchange(t *testing.T, port uint16, text string) {
	t.Helper()
	connection := headgatetest.Dial(t, port)
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(headgatetest.Timeout)); err != nil {
		t.Fatal(err)
	}
	// The server may answer, and end, before it has read all.
	_, _ = connection.Write([]byte(text))
	_ = connection.(*net.TCPConn).CloseWrite()
	for buffer := make([]byte, 4096); ; {
		if _, err := connection.Read(buffer); err != nil {
			return
		}
	}
}

// With escape=none, clients can write lines: by what is decoded. The documentation says so.
func TestEscapeNone(t *testing.T) {
	t.Parallel()
	l := start(t, "", "log-format-upstream: $http_user_agent [$arg_x] [$http_x_any] [$remote_user] [$uri]", "log-format-escape-none: true")
	exchange(t, l.HTTP, "GET /%0aforged-by-path?x=%0aforged-by-argument HTTP/1.1\r\nHost: web.test\r\nX-Any: a\tb\r\nAuthorization: Basic CmZvcmdlZC1ieS11c2VyOng=\r\nConnection: close\r\n\r\n")
	all := strings.Join(linesIn(t, l.file, "forged-by-path"), "\n")
	for text, want := range map[string]bool{"\nforged-by-path": true, "\nforged-by-user": true, "\nforged-by-argument": false, "[a\tb]": true} {
		if strings.Contains(all, text) != want {
			t.Errorf("%q in %q: want %v", text, all, want)
		}
	}
}

// A file can be rotated: NGINX opens it again by its name.
func TestRotation(t *testing.T) {
	t.Parallel()
	l := start(t, "")
	folder := filepath.Dir(l.file)
	// Workers must get there, as in a folder of a volume.
	for _, dir := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Join(folder, "rotated.log")
	l.ApplyReloading(headgatetest.Config("access-log-path: " + name))
	l.Get("web.test", "/first").WantStatus(t, 200)
	linesIn(t, name, "GET /first ")
	if err := os.Rename(name, name+".1"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(l.RunDir.Path(), "nginx.pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	headgatetest.Eventually(t, "the worker writes to the new file", func() bool {
		l.Get("web.test", "/second").WantStatus(t, 200)
		content, err := os.ReadFile(name)
		return err == nil && strings.Contains(string(content), "GET /second ")
	})
	if content, err := os.ReadFile(name + ".1"); err != nil || !strings.Contains(string(content), "GET /first ") {
		t.Errorf("%v, the old file has %q", err, content)
	}
}

// A syslog server gets the lines.
func TestSyslog(t *testing.T) {
	t.Parallel()
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	l := start(t, "", "access-log-path: syslog:server="+server.LocalAddr().String()+",tag=edge,nohostname")
	l.Get("web.test", "/by-syslog").WantStatus(t, 200)
	if err := server.SetReadDeadline(time.Now().Add(headgatetest.Timeout)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 4096)
	n, _, err := server.ReadFrom(buffer)
	if err != nil || !strings.Contains(string(buffer[:n]), `edge: 127.0.0.1 - - [`) || !strings.Contains(string(buffer[:n]), "GET /by-syslog ") {
		t.Errorf("%v: got %q", err, buffer[:n])
	}
}
