package snippet

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/nginx"
)

// arguments are tried with every directive.
func arguments() []string {
	return []string{
		"", "on", "off", "ON", "any", "all", "max", "epoch", "-1", "0", "1", "403", "99", "1000", "10s", "1h30m", "1m 5", "'1h 5s'", "15ms", "1M", "@12h", "@25h",
		"modified 5m", "modified @1h", "4k", "1g", "4 8k", "0 4k", "1.0", "1.1", "http_502 timeout", "error off", "text/css text/html", "10.0.0.0/8", "10.1.2.3/8", "::1",
		"10.0.0.0/33", "1.2.3", "unix:", "GET POST {}", "GET { deny all; }", "GET { allow 10.0.0.1; deny all; }", "FOO { deny all; }",
		"X-A b", "X-A $host", "X-A ''", "X-A b always", "X-A b never", "'X A' b", "'X-A: b'", "'X-A b' 'X-C:  $uri'", "-s 404 -t text/html 'X-A: b'", "-r 'X-A: b'", "X-*", "'X-*: b'", "-s",
		"-s x X-A", "$a b", "$a $host", "$a '$1${a}x'", "$a ${1}", "$a $", "$a ${host", "$args x=1", "$host b", "$http_x_a b", "$a $upstream_http_x_user", "b c", "$limit_rate 5k",
		"404 /404", "404 = /404", "404 =200 /404?a=1", "404 500 = @named", "404 https://e.test/$uri", "499 /x", "497 /x", "404", "=200 /x", "404 =x /x", "404 @$host",
		"^/a(.*)$ /b$1", "^/a(?<rest>.*)$ /b$rest last", "^/a /b? break", "^/a https://e.test/ redirect", "^/a '' last", "^/a ? permanent", "^/a /b now", "( /b", "'^/a{2}' /b", `\.php$ /x`,
		"301 https://$host$request_uri", "200 'a b'", "444", "https://e.test", "$scheme://e.test", "404 a b", "12 x", "text",
		"($a) { set $b 1; }", "($host = a) { return 403; }", "($host = '$uri') { return 403; }", "( $host ~* '^(a|b)' ) { set $a $1; }", "($host !~ '(') { }", "($host == a) { }", "(a = b) { }",
		"($a = b c) { }", "$host = a { }", "() { }", "(-f $request_uri) { }", "($no_such) { }", "($1) { }", "($host = a) { if ($uri = b) { set $a 1; } }", "($host) { deny all; }",
		"/a { return 403; }", "= /a { deny all; }", "^~ /a { }", "~ \\.php$ { return 404; }", "~*\\.php$ { }", "=/a { internal; }", "@n { return 200; }", "/a { location /a/b { return 200 x; } }",
		"/a { location /b { } }", "= /a { location /a/b { } }", "~ a { location /b { } }", "! /a { }", "/a { if ($host) { return 403; } }", "/a b c { }",
		"zone=z", "zone=z burst=5 nodelay", "z 5", "$uri $uri/ =404", "$uri /index.php", "info", "error", "TLSv1.2 TLSv1.3", "X-Accel-Redirect", "X-A", "/ /b", "a b", "default", "~ secure", "one secure samesite=lax",
		"combined", "\"a\"b", "a}b", "a\\", "#c\n x", "'a\nb' c", "X-A 'a\n b'", "X-Forwarded-For", "proxy_protocol", "127.0.0.1", "PUT", "HIGH", "$host", "$http_x $host", "'a b'",
	}
}

// surroundings has what ingress-nginx writes around a text, by what the text is in: an
// outer part with one verb for the text. It leaves out the settings that it writes too.
func surroundings() map[string]string {
	const location = "set $namespace a; set $service_name b; proxy_set_header Host $http_host; proxy_set_header X-Real-IP $remote_addr; proxy_pass http://127.0.0.1:1;"
	return map[string]string{
		"location":           "location / { " + location + "\n%s\n}",
		"server":             "%s\nlocation / { " + location + " }",
		"if in location":     "location / { " + location + " if ($host = a) {\n%s\n} }",
		"if in server":       "if ($host = a) {\n%s\n} location / { " + location + " }",
		"location in server": "location /other {\n%s\n} location / { " + location + " }",
	}
}

// snippetIn is the text as a tenant would write it, for a key of surroundings.
func snippetIn(place, text string) (string, Place) {
	switch place {
	case "server":
		return text, InServer
	case "if in location":
		return "if ($host = a) {\n" + text + "\n}", InLocation
	case "if in server":
		return "if ($host = a) {\n" + text + "\n}", InServer
	case "location in server":
		return "location /other {\n" + text + "\n}", InServer
	}
	return text, InLocation
}

// relatedSizes are directives whose sizes NGINX compares with one another.
var relatedSizes = regexp.MustCompile(`^(proxy|fastcgi|grpc)_.*(buffer|temp_file)`)

// isException reports whether NGINX may not start with a text that Parse takes: Debian 12's
// headers-more is older than the option -a, "proxy_redirect default" must be behind the
// proxy_pass, and a limit_conn needs its zone.
func isException(name, arguments string) bool {
	return relatedSizes.MatchString(name) || strings.HasPrefix(arguments, "-a ") || name == "proxy_redirect" && arguments == "default" ||
		name == "limit_conn" && !strings.HasPrefix(arguments, "z ")
}

// tried are the directives to try in a kind of block. Headgate has no use for the arguments
// of idle ones, and settings are the same below the top.
func tried(place string) []string {
	names := maps.Clone(directives())
	idle := map[string]kind{}
	addIdle(idle)
	if place != "location" && place != "server" {
		addSettings(idle)
	}
	for name := range idle {
		delete(names, name)
	}
	return slices.Sorted(maps.Keys(names))
}

// TestNGINXTakesWhatParseTakes has NGINX test all texts that Parse takes without a refusal:
// each directive with each of many arguments, in each kind of block.
func TestNGINXTakesWhatParseTakes(t *testing.T) {
	var texts, servers []string
	places := surroundings()
	for _, place := range slices.Sorted(maps.Keys(places)) {
		for _, name := range tried(place) {
			for _, argument := range arguments() {
				text := name + " " + argument
				if !strings.HasSuffix(argument, "}") || strings.HasSuffix(argument, "a}b") {
					text += ";"
				}
				whole, at := snippetIn(place, text)
				if isException(name, argument) || Parse(whole, at, Options{}).Refusals != nil {
					continue
				}
				texts = append(texts, place+": "+text)
				servers = append(servers, strings.ReplaceAll(places[place], "%s", text))
			}
		}
	}
	t.Log(len(texts), "texts")
	if len(texts) < 1000 {
		t.Errorf("Parse takes %d texts only", len(texts))
	}
	for range 10 {
		bad, reason := rejected(t, servers)
		if bad < 0 {
			return
		}
		t.Errorf("%s\nNGINX: %s", texts[bad], reason)
		texts, servers = slices.Delete(texts, bad, bad+1), slices.Delete(servers, bad, bad+1)
	}
}

var errorLine = regexp.MustCompile(`(?m)\[emerg\] [0-9#]+: (.*?)(?: in \S+:(\d+))?$`)

// rejected returns the first server that NGINX does not take, -1 if it takes all.
func rejected(t *testing.T, servers []string) (int, string) {
	t.Helper()
	capabilities, err := nginx.Discover(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var conf strings.Builder
	for _, file := range capabilities.Modules {
		fmt.Fprintf(&conf, "load_module %q;\n", file)
	}
	dir := t.TempDir()
	fmt.Fprintf(&conf, "pid %s/pid;\nevents {}\nhttp {\naccess_log off;\nvariables_hash_max_size 4096;\nserver_names_hash_max_size 65536;\nlimit_req_zone $host zone=z:1m rate=1r/s;\n", dir)
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&conf, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	// A limit_conn of the same name needs a zone of its own.
	text := strings.ReplaceAll(strings.Join(servers, "\x00"), "limit_conn z ", "limit_conn c ")
	conf.WriteString("limit_conn_zone $host zone=c:1m;\n")
	var starts []int
	line := strings.Count(conf.String(), "\n") + 1
	for i, server := range strings.Split(text, "\x00") {
		starts = append(starts, line)
		block := fmt.Sprintf("server { listen unix:%s/s; server_name s%d;\n%s\n}\n", dir, i, server)
		conf.WriteString(block)
		line += strings.Count(block, "\n")
	}
	conf.WriteString("}\n")
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(capabilities.Binary, "-t", "-q", "-p", dir, "-c", file, "-e", "stderr").CombinedOutput()
	if err == nil {
		return -1, ""
	}
	found := errorLine.FindStringSubmatch(string(out))
	if found == nil || found[2] == "" {
		t.Fatalf("nginx -t: %v\n%s", err, out)
	}
	at, err := strconv.Atoi(found[2])
	if err != nil {
		t.Fatal(err)
	}
	index, exact := slices.BinarySearch(starts, at)
	if !exact {
		index--
	}
	return index, found[1]
}
