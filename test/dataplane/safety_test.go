package dataplane_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/dataplane"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/lua"
)

// NGINX does not compare a Content-Length with the limit of a location that is
// jumped to.
func TestBodyLimitHoldsInNamedProfiles(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.Ingress("step", "step.test", "/", "a", "proxy-body-size: 2k") +
		headgatetest.Ingress("between", "between.test", "/", "a", "proxy-body-size: 1500") +
		headgatetest.Ingress("streamed", "streamed.test", "/", "a", "proxy-body-size: 1500", "proxy-request-buffering: off")})
	for _, c := range []struct {
		host  string
		limit int
	}{{"step.test", 2048}, {"between.test", 1500}, {"streamed.test", 1500}} {
		for _, scheme := range []string{"http", "https"} {
			for length, want := range map[int]int{c.limit: 200, c.limit + 1: 413, 100 * c.limit: 413} {
				r := g.Do(headgatetest.Request{
					Method: "POST", Scheme: scheme, HTTP2: scheme == "https", Host: c.host, Body: bytes.NewReader(make([]byte, length)),
				})
				if r.Status != want {
					t.Errorf("%s://%s, %d bytes: %d, want %d", scheme, c.host, length, r.Status, want)
				}
			}
		}
	}
}

// push puts units into the data plane as the controller would, but without its
// checks.
func push(t *testing.T, g *headgatetest.Instance, entries ...unit.Change) {
	t.Helper()
	state := g.State()
	if _, err := g.Client.Push(t.Context(), state.Dictionary, state.Generation, entries); err != nil {
		t.Fatal(err)
	}
}

// Only addresses are asked: NGINX would take unix sockets and names too.
func TestEndpointsAreAddresses(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: headgatetest.Ingress("web", "a.test", "/", "a") + served("a", headgatetest.StartEcho(t, "a"))})
	g.Get("a.test", "/").WantStatus(t, 200)
	good := startWire(t, "X-Wire: good\r\n").address
	for i, endpoint := range []string{
		"unix:" + g.RunDir.Socket(), "unix:" + g.RunDir.Socket() + ":80", "unix:/x:80", "localhost:80", "backend.test:80",
		"127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:http", "[::1]", "::1:80", "127.1:80", "127.0.0.1:80/x", good + " ", "\n" + good, "",
	} {
		quoted := strings.NewReplacer("\n", `\n`, `"`, `\"`).Replace(endpoint)
		push(t, g, unit.Change{
			Kind: unit.Backend, Name: "default/a/80", Version: fmt.Sprintf("%x", i+1), Payload: []byte(`{"endpoints":["` + quoted + `"]}`),
		})
		// The worker stays at the last backend that it could use.
		if r := g.Get("a.test", "/v1/state"); r.Status != 200 || r.Echo == nil {
			t.Errorf("endpoint %q: %d %.100s", endpoint, r.Status, r.Body)
		}
	}
	// A worker that has none answers 503, and logs why.
	push(t, g,
		unit.Change{Kind: unit.Backend, Name: "default/b/80", Version: "1", Payload: []byte(`{"endpoints":["unix:` + g.RunDir.Socket() + `"]}`)},
		unit.Change{Kind: unit.Host, Name: "b.test", Version: "1", Payload: []byte(`{"backends":["default/b/80"],"locations":["p"],"routes":[{"prefix":"/","backend":1,"location":1}]}`)},
		unit.Change{Kind: unit.Name, Name: "b.test", Version: "1", Payload: []byte(`{"host":"b.test"}`)})
	g.Get("b.test", "/v1/state").WantStatus(t, 503)
	if !slices.ContainsFunc(g.State().Broken, func(b dataplane.Broken) bool { return b.Kind == "backend" && b.Name == "default/b/80" }) {
		t.Errorf("the worker reports no broken backend: %+v", g.State().Broken)
	}
	push(t, g, unit.Change{Kind: unit.Backend, Name: "default/a/80", Version: "ff", Payload: []byte(`{"endpoints":["` + good + `"]}`)})
	if r := g.Get("a.test", "/"); r.Header.Get("X-Wire") != "good" {
		t.Errorf("a good endpoint after them: %d %q", r.Status, r.Body)
	}
}

// What can't be decoded is written to the error log: its bytes must not make
// lines there.
func TestErrorLogCannotBeForged(t *testing.T) {
	t.Parallel()
	const forged = "\n2025/01/01 00:00:00 [emerg] 1#1: forged by a tenant"
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: served("a", headgatetest.StartEcho(t, "a"))})
	quoted := strings.ReplaceAll(forged, "\n", `\r\n`)
	push(t, g,
		unit.Change{Kind: unit.Host, Name: "h.test", Version: "1", Payload: []byte(
			`{"backends":["x"],"locations":["p"],"policies":[["` + quoted + `",{}]],"routes":[{"prefix":"/","backend":1,"location":1,"policies":[1]}]}`)},
		unit.Change{Kind: unit.Name, Name: "h.test", Version: "1", Payload: []byte(`{"host":"h.test"}`)},
		unit.Change{Kind: unit.Backend, Name: "x" + forged, Version: "1", Payload: []byte(`no JSON`)},
		unit.Change{Kind: unit.Host, Name: "b.test", Version: "1", Payload: []byte(
			`{"backends":["x` + strings.ReplaceAll(forged, "\n", `\n`) + `"],"locations":["p"],"routes":[{"prefix":"/","backend":1,"location":1}]}`)},
		unit.Change{Kind: unit.Name, Name: "b.test", Version: "1", Payload: []byte(`{"host":"b.test"}`)})
	for _, host := range []string{"h.test", "b.test"} {
		g.Get(host, "/").WantStatus(t, 503)
	}
	logged := func() int { return strings.Count(g.Log.String(), "can't be decoded") }
	headgatetest.Eventually(t, "both are logged", func() bool { return logged() >= 2 })
	for line := range strings.Lines(g.Log.String()) {
		if strings.Contains(line, "forged") && (!strings.Contains(line, "can't be decoded") || strings.Contains(line, "severity=emerg")) {
			t.Errorf("a line that a tenant wrote: %s", line)
		}
	}
}

// Variables are written out raw: their one writer takes out what would end a
// header line. No client gets such bytes past NGINX's own checks of today, so
// the writer is given them here.
func TestVariablesHoldNoLineEnds(t *testing.T) {
	t.Parallel()
	g := bareNGINX(t, `set $hg_backend_host ""; set $proxy_upstream_name "";
        access_by_lua_block {
            local request = require "headgate.request"
            request.set_backend_host("a.test\r\nX-Smuggled: 1\n\0b")
        }
        proxy_set_header Host $hg_backend_host;`)
	head := g("/")
	if header := sentHeader(head); header.Get("Host") != "a.testX-Smuggled: 1b" || header.Get("X-Smuggled") != "" {
		t.Errorf("the backend got\n%s", head)
	}
}

// bareNGINX runs NGINX with Headgate's Lua and one location of its own, which
// proxies to a wire. It returns what asks it.
func bareNGINX(t *testing.T, location string) func(target string) string {
	t.Helper()
	capabilities, err := nginx.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "hg-bare-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	modules, err := lua.Files(all.Features())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range modules {
		file := filepath.Join(dir, "lua", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var conf strings.Builder
	for _, module := range capabilities.Modules {
		fmt.Fprintf(&conf, "load_module %s;\n", module)
	}
	socket := filepath.Join(dir, "s")
	fmt.Fprintf(&conf, "daemon off; master_process off; pid %[1]s/pid; error_log stderr warn;\nevents {}\nhttp {\n"+
		"  access_log off; lua_package_path \"%[1]s/lua/?.lua;;\"; client_body_temp_path %[1]s/t1; proxy_temp_path %[1]s/t2;\n"+
		"  fastcgi_temp_path %[1]s/t3; uwsgi_temp_path %[1]s/t4; scgi_temp_path %[1]s/t5;\n"+
		"  map \"\" $hg_request { default \"\"; }\n"+
		"  server { listen unix:%[2]s; location / { %[3]s\n proxy_pass http://%[4]s; } }\n}\n", dir, socket, location, startWire(t, "").address)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	command := exec.CommandContext(t.Context(), capabilities.Binary, "-c", file, "-e", "stderr", "-p", dir)
	command.Stderr = &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("NGINX said:\n%s", output.String())
		}
	})
	client := &http.Client{Timeout: headgatetest.Timeout, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	t.Cleanup(client.CloseIdleConnections)
	return func(target string) string {
		var body []byte
		headgatetest.Eventually(t, "NGINX answers", func() bool {
			response, err := client.Get("http://bare" + target)
			if err != nil {
				return false
			}
			defer response.Body.Close()
			body, err = io.ReadAll(response.Body)
			return err == nil
		})
		return string(body)
	}
}

// luaRules are what only some files may do: variables and log lines are
// written out raw.
var luaRules = []struct {
	what    string
	form    *regexp.Regexp
	allowed []string
}{
	{"assigns a variable of NGINX", regexp.MustCompile(`(?:\bngx\s*\.\s*var|\bngx_var|\bvar)\s*(?:\.\s*\w+|\[[^\]]*\])\s*=[^=]`), []string{"lua/headgate/request.lua", "lua/headgate/access_log.lua"}},
	{"has a table of its own for ngx.var", regexp.MustCompile(`rawset|local\s+(?:[a-mo-z]\w*|n[a-fh-z]\w*)\s*=\s*ngx(?:\.var)?\s*$`), nil},
	{"logs", regexp.MustCompile(`\bngx\s*(?:\.\s*log\b|\[\s*["']log)|(?:^|[^\w.])print\s*\(|\bngx_log\b|errlog`), []string{"lua/headgate/log.lua"}},
	{"reads a variable whose name it does not spell", regexp.MustCompile(`(?:\bngx\s*\.\s*var|\bngx_var)\s*\[(?:[^\]]*\]\s*(?:[^=\s]|==|$)|[^\]]*$)`), []string{"lua/headgate/client.lua"}},
	{"sets a variable whose name it does not spell", regexp.MustCompile(`(?:\bngx\s*\.\s*var|\bngx_var)\s*\[[^\]]*\]\s*=(?:[^=]|$)`), []string{"lua/headgate/request.lua", "lua/headgate/access_log.lua"}},
}

func TestLuaRules(t *testing.T) {
	t.Parallel()
	root := os.DirFS(filepath.Join("..", ".."))
	files, used := 0, map[string]bool{}
	for _, dir := range []string{"lua", "internal/feature"} {
		err := fs.WalkDir(root, dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".lua" {
				return err
			}
			files++
			content, err := fs.ReadFile(root, path)
			for n, line := range strings.Split(string(content), "\n") {
				code, _, _ := strings.Cut(line, "--")
				for _, rule := range luaRules {
					if !rule.form.MatchString(code) {
						continue
					}
					used[rule.what+path] = true
					if !slices.Contains(rule.allowed, path) {
						t.Errorf("%s:%d %s: %s", path, n+1, rule.what, strings.TrimSpace(line))
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 20 {
		t.Errorf("only %d Lua files were looked at", files)
	}
	// A rule that finds nothing where it is allowed would find nothing at all.
	for _, rule := range luaRules {
		for _, path := range rule.allowed {
			if !used[rule.what+path] {
				t.Errorf("the rule does not see that %s %s", path, rule.what)
			}
		}
	}
}

// A backend can't send its request on to another location.
func TestBackendsCannotRedirectInside(t *testing.T) {
	t.Parallel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if target := r.Header.Get("X-Go-To"); target != "" {
			w.Header().Set("X-Accel-Redirect", target)
		}
		fmt.Fprint(w, "asked for ", r.RequestURI)
	})
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("a", headgatetest.StartBackend(t, handler)) +
		headgatetest.Ingress("plain", "plain.test", "/", "a") + headgatetest.Ingress("named", "named.test", "/", "a", "proxy-body-size: 3m")})
	profile := regexp.MustCompile(`location (@\w+)`).FindStringSubmatch(renderedConf(t, g))
	if profile == nil {
		t.Fatal("there is no named profile")
	}
	for _, host := range []string{"plain.test", "named.test"} {
		for _, target := range []string{"/elsewhere", profile[1], "/v1/state", "@none"} {
			r := g.Do(headgatetest.Request{Host: host, Path: "/here", Header: http.Header{"X-Go-To": {target}}}).WantStatus(t, 200)
			if r.Body != "asked for /here" || r.Header.Get("X-Accel-Redirect") != "" {
				t.Errorf("%s, to %s: %q, %v", host, target, r.Body, r.Header)
			}
		}
	}
}

func renderedConf(t *testing.T, g *headgatetest.Instance) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(g.RunDir.Path(), "nginx.conf"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
