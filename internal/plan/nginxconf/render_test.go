package nginxconf_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/model/names"
	"github.com/headgate/headgate/internal/nginx/rundir"
	"github.com/headgate/headgate/internal/plan/nginxconf"

	"github.com/headgate/headgate/internal/model/logging"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/model/resource"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/test/pkitest"
	"github.com/headgate/headgate/lua"
)

var update = flag.Bool("update", false, "write the golden files again")

const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30

var dictionaries = nginxconf.Dictionaries{Number: 1, Units: mib, Versions: mib, Certificates: mib}

// usualProfile is the default one of an empty ConfigMap.
func usualProfile() model.Profile { return profileOf(nil) }

// unlike is the usual profile but for these values.
func unlike(values ...model.ProfileValue) model.Profile { return usualProfile().With(values...) }

func value(name string, number int64) model.ProfileValue {
	return model.ProfileValue{Name: name, Number: number}
}

// by asks backends in that way.
func by(protocol model.Protocol, tls bool) model.Profile {
	p := usualProfile()
	p.Protocol, p.TLS = protocol, tls
	return p
}

// headerName is a name that is known to be valid.
func headerName(text string) model.HeaderName {
	name, err := model.NewHeaderName(text)
	if err != nil {
		panic(err)
	}
	return name
}

var (
	catches    = directive.Directive{Name: "error_page", Kind: directive.Statuses}
	catchesOwn = directive.Directive{Name: "own_error_page", Kind: directive.OwnStatuses}
)

// withAccess has an access phase besides.
func withAccess(p model.Profile) model.Profile {
	p.Access = true
	return p
}

func upgrades(list ...string) names.Upgrades {
	u, err := names.NewUpgrades(list...)
	if err != nil {
		panic(err)
	}
	return u
}

func hiddenHeaders() names.Headers {
	headers, err := names.NewHeaders("X-Powered-By", "x_one", "X-POWERED-BY")
	if err != nil {
		panic(err)
	}
	return headers
}

func usualProcess() model.Process {
	return model.Process{
		Worker: model.WorkerSettings{Connections: 16384, MultiAccept: true}, ShutdownTimeout: 240 * time.Second, AccessLog: true, RequestIDs: true, HTTP2: true, ClientKeepalive: 75 * time.Second, ClientRequests: 1000,
		ClientHeaderTimeout: time.Minute, ClientBodyTimeout: time.Minute,
		Upgrades: upgrades("websocket"), BackendConnections: 320, BackendRequests: 10000, BackendIdle: time.Minute, BackendAge: time.Hour,
		TLS: model.TLS{
			Versions: model.TLS12 | model.TLS13, Ciphers: model.IntermediateCiphers(), SessionCache: 10 * mib, SessionTimeout: 10 * time.Minute,
			BufferSize: 4 * kib,
		},
	}
}

func usualGlobals() model.Globals {
	return model.Globals{Process: usualProcess(), Default: usualProfile()}
}

// path and word are of texts that the tests know to be good.
func path(t testing.TB, text string) nginxconf.Path {
	t.Helper()
	p, err := nginxconf.NewPath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func environment(t testing.TB) nginxconf.Environment {
	t.Helper()
	user, err := nginxconf.NewWord("www-data")
	if err != nil {
		t.Fatal(err)
	}
	return nginxconf.Environment{
		Resources: feature.Resources(all.Features()), Directives: feature.Directives(all.Features()),
		RunDir: path(t, "/run/headgate"), User: user, Modules: []nginxconf.Path{path(t, "/usr/lib/nginx/modules/ngx_http_lua_module.so")},
		HTTPPort: 80, HTTPSPort: 443, HealthPath: path(t, "/healthz"), AccessLog: path(t, "/dev/stdout"), Workers: 2, OpenFiles: 65536, Backlog: 511,
		Authorities: path(t, "/etc/ssl/certs/ca-certificates.crt"),
	}
}

type renderCase struct {
	name         string
	change       func(*nginxconf.Environment, *model.Globals)
	profiles     []model.Profile
	dictionaries nginxconf.Dictionaries
}

func adminText(text string) model.AdminText {
	a, err := model.NewAdminText(text)
	if err != nil {
		panic(err)
	}
	return a
}

func requestLog(t testing.TB, format, target, options string, whole, patterns []string) logging.RequestLog {
	t.Helper()
	f, err := logging.NewFormat(format)
	to, err2 := logging.AccessLogTarget(target)
	by, err3 := logging.NewOptions(options)
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	return logging.RequestLog{Format: f, Escape: logging.EscapeJSON, Target: to, Options: by, Skipped: logging.NewSkippedURLs("some", whole, patterns)}
}

func renderCases(t testing.TB) []renderCase {
	groups, err := model.NewCurves("X25519:P-256")
	if err != nil {
		t.Fatal(err)
	}
	grown := nginxconf.Dictionaries{Number: 2, Units: 2 * mib, Versions: 2 * mib, Certificates: mib, Previous: &nginxconf.Dictionaries{Number: 1, Units: mib, Versions: mib, Certificates: mib}}
	return []renderCase{
		{"usual", func(*nginxconf.Environment, *model.Globals) {}, nil, dictionaries},
		{"profiles", func(*nginxconf.Environment, *model.Globals) {}, []model.Profile{
			withAccess(unlike(
				value("buffering", 1), value("buffer_size", 8*kib), value("buffers", 2), value("client_max_body_size", 5*mib), value("client_body_buffer_size", kib),
				value("max_temp_file_size", 8*kib), value("next_upstream", int64(model.AllRetryConditions)), value("next_upstream_timeout", 1), value("http_version", 1),
			)),
			unlike(
				value("request_buffering", 0), value("buffer_size", 16*mib), value("buffers", 256), value("client_max_body_size", 0), value("client_body_buffer_size", 128*mib),
				value("busy_buffers_size", 2*gib), value("max_temp_file_size", 0), value("next_upstream", 0), value("next_upstream_timeout", 3600),
			),
			unlike(value("client_max_body_size", 500*gib), value("next_upstream", int64(model.Status429))),
		}, dictionaries},
		{"protocols", func(e *nginxconf.Environment, g *model.Globals) {
			file, server := resource.NewName("hg_fastcgi_script_filename"), resource.NewName("hg_fastcgi_server_name")
			// Two are enough to read.
			e.Resources.Variables = slices.DeleteFunc(slices.Clone(e.Resources.Variables), func(v resource.Variable) bool {
				return strings.HasPrefix(v.Name.String(), "hg_fastcgi_") && v.Name != file && v.Name != server
			})
			e.Resources.Parameters = []resource.Parameter{
				{Name: resource.NewParameterName("SCRIPT_FILENAME"), Variable: file}, {Name: resource.NewParameterName("SERVER_NAME"), Variable: server},
			}
			g.Process.HSTS.On = true
		}, []model.Profile{by(model.FastCGI, false), by(model.GRPC, false), by(model.GRPC, true), by(model.HTTP, true)}, dictionaries},
		{"error-pages", func(_ *nginxconf.Environment, g *model.Globals) {
			g.Process.HSTS.On = true
		}, []model.Profile{withAccess(unlike(catches.Catch([]int{503, 404, 404}))), by(model.GRPC, false).With(catches.Catch([]int{401})), unlike(catchesOwn.Catch([]int{502}))}, dictionaries},
		{"settings", func(e *nginxconf.Environment, g *model.Globals) {
			e.IPv6, e.User, e.OpenFiles = true, nginxconf.Word{}, 0
			g.Process = model.Process{
				Workers: 7, ShutdownTimeout: 1500 * time.Millisecond, ServerTokens: true, AddsHeaders: true, ShowsPages: true, BackendServer: true, HiddenHeaders: hiddenHeaders(), ClientRequests: 1,
				ClientHeaderTimeout: time.Second, ClientBodyTimeout: time.Second, BackendRequests: 1, BackendIdle: time.Second, BackendAge: time.Second,
				TLS:        model.TLS{Versions: model.TLS13, Curves: groups, Tickets: true, BufferSize: 16 * kib, EarlyData: true, RejectUnknown: true},
				RequestLog: logging.RequestLog{Off: true},
			}
			g.Default.Access = true
		}, nil, dictionaries},
		{"headers", func(_ *nginxconf.Environment, g *model.Globals) {
			g.Process.SeesResponses, g.Process.OriginalURI = true, true
			g.Process.ReplacedHeaders, _ = names.NewHeaders("X-Forwarded-For", "X-Forwarded-Proto", "X-Request-ID")
		}, []model.Profile{by(model.GRPC, false)}, dictionaries},
		{"error-log", func(_ *nginxconf.Environment, g *model.Globals) {
			g.Process.ErrorLog.Level, _ = logging.NewErrorLevel("warn")
			g.Process.ErrorLog.Target, _ = logging.ErrorLogTarget("syslog:server=127.0.0.1:514,tag=one")
		}, nil, dictionaries},
		{"syslog", func(_ *nginxconf.Environment, g *model.Globals) {
			g.Process.Syslog = logging.NewSyslog("2001:db8::1", 514)
			g.Process.LogsCalls = true
		}, nil, dictionaries},
		{"request-log", func(e *nginxconf.Environment, g *model.Globals) {
			e.PipedLog = true
			g.Process.RequestLog = requestLog(t, `{"h": "$Server_Name", "n": "${namespace}s", "i": "$the_real_ip$best_http_host", "b": "$balancer_ewma_score", "q": "\"it's\""}`,
				"/tmp/a.log", "buffer=4k flush=1s", []string{"/a", "/A", `/"$x;`, "/" + strings.Repeat("x.", 20)}, []string{`~(*LIMIT_MATCH=5)^/\d{2};`})
		}, nil, dictionaries},
		{"request-log-to-a-pipe", func(e *nginxconf.Environment, g *model.Globals) {
			e.PipedLog = true
			g.Process.RequestLog = requestLog(t, "$pass_access_scheme $full_x_forwarded_for $pass_port $request_id $proxy_host $connection_upgrade", "", "", nil, nil)
		}, nil, dictionaries},
		{"traces", func(_ *nginxconf.Environment, g *model.Globals) {
			g.Process.Tracing.HasCollector = true
			g.Process.RequestLog = requestLog(t, "$opentelemetry_trace_id ${OpenTelemetry_Span_ID}", "", "", nil, nil)
		}, nil, dictionaries},
		{"core", func(e *nginxconf.Environment, g *model.Globals) {
			g.Process.Worker.OpenFiles, g.Process.Worker.Connections = 4096, 0
			g.Process.Worker.CPUs, _ = model.NewCPUAffinity("auto 0101")
			g.Process.Worker.WritesInThreads = true
			g.Process.Worker.Debugged = model.Networks{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::1/128")}
			g.Process.Hashes = model.HashSizes{
				MapBucket: 128, ProxyHeadersBucket: 128, ProxyHeadersMax: 1024, ServerNamesBucket: 128, ServerNamesMax: 2048, VariablesBucket: 512, VariablesMax: 4096,
			}
			g.Process.DefaultType, _ = model.NewMIMEType("application/octet-stream")
			g.Process.HTTP2Streams = 256
			g.Process.ClientHeader = model.ClientHeader{Buffer: 2 * kib, LargeBuffers: 2, LargeSize: 16 * kib, Underscores: true, Invalid: true}
		}, nil, dictionaries},
		{"addresses", func(e *nginxconf.Environment, g *model.Globals) {
			e.IPv6, e.DefaultServerPort = true, 8181
			g.Process.Listening = model.Listening{Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")}, OneSocket: true}
		}, nil, dictionaries},
		{"growing", func(*nginxconf.Environment, *model.Globals) {}, nil, grown},
		{"hooks", func(e *nginxconf.Environment, _ *model.Globals) {
			hook := func(function string) []resource.Handler {
				return []resource.Handler{resource.NewHandler("headgate.feature.one", function), resource.NewHandler("headgate.feature.two", function)}
			}
			e.Resources.InitWorker, e.Resources.Log = hook("init_worker"), hook("log")
		}, nil, dictionaries},
		{"snippets", func(_ *nginxconf.Environment, g *model.Globals) {
			g.Process.Snippets = model.Snippets{
				Main: adminText("env TZ;\ntimer_resolution 100ms;"), HTTP: adminText(`map $uri $mine { default "a;{}b"; }`),
				Server: adminText("log_not_found off;"), Location: adminText("add_header X-Mine $mine;"),
			}
		}, nil, dictionaries},
		{"proxy-protocol", func(e *nginxconf.Environment, g *model.Globals) {
			e.IPv6 = true
			g.Process.ClientAddress.ProxyProtocol = true
			g.Process.ClientAddress.Trusted = model.Networks{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}
		}, nil, dictionaries},
		{"forwarded-headers", func(_ *nginxconf.Environment, g *model.Globals) {
			g.Process.ClientAddress = model.ClientAddress{For: model.ForwardedFor, Forwarded: true, Trusted: model.Networks{netip.MustParsePrefix("10.0.0.0/8")}}
		}, nil, dictionaries},
		{"all-addresses", func(e *nginxconf.Environment, g *model.Globals) {
			e.Passthrough = true
			g.Process.ClientAddress = model.ClientAddress{
				ProxyProtocol: true, For: headerName("CF-Connecting-IP"), Forwarded: true, Full: true, Trusted: model.Networks{netip.MustParsePrefix("10.0.0.0/8")},
				OriginalFor: headerName("CF-Connecting-IP"), OriginalHost: headerName("X-Outer-Host"),
			}
		}, nil, dictionaries},
		{"more-ports", func(e *nginxconf.Environment, _ *model.Globals) {
			e.IPv6, e.DefaultServerPort, e.StatusPort = true, 8181, 10246
		}, nil, dictionaries},
		{"passthrough", func(e *nginxconf.Environment, g *model.Globals) {
			e.Passthrough, g.Process.Listening.OneSocket = true, true
		}, nil, dictionaries},
		{"newer-nginx", func(e *nginxconf.Environment, _ *model.Globals) { e.HTTP2Directive = true }, nil, dictionaries},
	}
}

// shown are the directives of profiles that golden files have: some of each
// kind. Others leave the files as they are. NGINX reads the samples of all in
// TestNginxTakesEveryProfile.
var shown = []string{
	"client_max_body_size", "buffering", "request_buffering", "buffer_size", "buffers", "busy_buffers_size", "max_temp_file_size",
	"client_body_buffer_size", "next_upstream", "next_upstream_timeout", "http_version", "error_page", "own_error_page",
}

// renderShown renders without all other directives of profiles.
func renderShown(t testing.TB, env nginxconf.Environment, globals model.Globals, profiles []model.Profile, d nginxconf.Dictionaries) string {
	t.Helper()
	var kept directive.List
	profiles = append([]model.Profile{globals.Default}, profiles...)
	for _, declared := range env.Directives {
		if slices.Contains(shown, declared.Name) {
			kept = append(kept, declared)
			continue
		}
		for i := range profiles {
			profiles[i] = profiles[i].With(declared.To(0))
		}
	}
	env.Directives, globals.Default = kept, profiles[0]
	return render(t, env, globals, profiles[1:], d)
}

func render(t testing.TB, env nginxconf.Environment, globals model.Globals, profiles []model.Profile, d nginxconf.Dictionaries) string {
	t.Helper()
	files, err := nginxconf.Render(env, globals, profiles, globals.Process.TLS.RejectUnknown, d)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 {
		t.Fatalf("%d files", len(files))
	}
	return string(files[nginxconf.File])
}

// TestGolden: the first case has a golden file with all of nginx.conf, and the
// others have what differs from it.
func TestGolden(t *testing.T) {
	t.Parallel()
	usual := renderShown(t, environment(t), usualGlobals(), nil, dictionaries)
	for _, c := range renderCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env, globals := environment(t), usualGlobals()
			c.change(&env, &globals)
			got := renderShown(t, env, globals, c.profiles, c.dictionaries)
			if c.name == renderCases(t)[0].name {
				compareGolden(t, c.name+".conf", got)
			} else {
				compareGolden(t, c.name+".diff", differences(usual, got))
			}
			checkRules(t, got)

			env, globals = realEnvironment(t), usualGlobals()
			c.change(&env, &globals)
			env.HTTP2Directive = realEnvironment(t).HTTP2Directive
			testConfiguration(t, env, render(t, env, globals, c.profiles, c.dictionaries))
		})
	}
}

// Without authorities no location would verify.
func TestAuthorities(t *testing.T) {
	t.Parallel()
	env, globals := environment(t), usualGlobals()
	globals.Process.Authorities = model.Content{Name: "0a", Bytes: []byte("PEM")}
	for _, system := range []nginxconf.Path{env.Authorities, {}} {
		env.Authorities = system
		files, err := nginxconf.Render(env, globals, nil, false, dictionaries)
		if err != nil || string(files["files/0a"]) != "PEM" || !strings.Contains(string(files[nginxconf.File]), "proxy_ssl_trusted_certificate /run/headgate/files/0a;") {
			t.Errorf("%v, %d files", err, len(files))
		}
	}
	globals.Process.Authorities = model.Content{}
	conf := render(t, env, globals, nil, dictionaries)
	if strings.Contains(conf, "verified") || strings.Contains(conf, "ssl_verify") || !strings.Contains(conf, "_check_https") {
		t.Error("a location that verifies by nothing")
	}
	checkRules(t, conf)
}

func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got; go test -update writes it)\n%s", diff)
	}
}

// realEnvironment is one in which NGINX can test a configuration.
func realEnvironment(t *testing.T) nginxconf.Environment {
	t.Helper()
	capabilities, err := nginx.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir, which the workers' user can't enter.
	parent, err := os.MkdirTemp("", "hg-plan-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	if err := os.Chmod(parent, 0o711); err != nil {
		t.Fatal(err)
	}
	dir, err := rundir.Open(parent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	modules, err := lua.Files(all.Features())
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteLua(modules); err != nil {
		t.Fatal(err)
	}
	ca := pkitest.PEM(pkitest.New(t).Root)
	if err := dir.Write(map[string][]byte{"generation": []byte("1\n"), "ca.crt": []byte(ca)}); err != nil {
		t.Fatal(err)
	}
	env := environment(t)
	env.Authorities = path(t, dir.Path()+"/ca.crt")
	env.RunDir, env.HTTP2Directive, env.Modules = path(t, dir.Path()), capabilities.HTTP2Directive, nil
	// -t binds the ports, which others may have.
	env.HTTPPort, env.HTTPSPort, env.AccessLog = 0, 0, path(t, "/dev/null")
	for _, module := range capabilities.Modules {
		env.Modules = append(env.Modules, path(t, module))
	}
	if os.Geteuid() != 0 {
		env.User = nginxconf.Word{}
	}
	return env
}

var listens = regexp.MustCompile(`listen (?:[0-9.]+|\[[0-9a-f:]+\]):0 default_server`)

func testConfiguration(t *testing.T, env nginxconf.Environment, conf string) {
	t.Helper()
	capabilities, err := nginx.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	conf = listens.ReplaceAllStringFunc(conf, func(string) string {
		n++
		return fmt.Sprintf("listen unix:%s/sock/t%d default_server", env.RunDir, n)
	})
	// A unix socket has no reuseport.
	conf = strings.ReplaceAll(conf, " reuseport", "")
	file := filepath.Join(env.RunDir.String(), "test.conf")
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), capabilities.Binary, "-t", "-e", "stderr", "-c", file).CombinedOutput()
	if err != nil || strings.Contains(string(out), "[warn]") || strings.Contains(string(out), "[error]") {
		t.Errorf("nginx -t: %v\n%s", err, out)
	}
}

var (
	directiveForm = regexp.MustCompile(`(?m)^\s*(\w+)\b`)
	location      = regexp.MustCompile(`(?m)^\s*location (.*) \{$`)
	proxyPass     = regexp.MustCompile(`(?m)^\s*(\w+_)pass (.*);$`)
	locationName  = regexp.MustCompile(`^(@(p_[0-9a-f]{12}([0-9a-f]{28})?(_[a-z]+)*|client|route|drain|traced|nginx_status|refused|error_page|fallback(_bare)?|page(_tls)?|_check_(https?|verified)_answer)|= _check_(https?|verified))$`)
	identity      = regexp.MustCompile(`_[0-9a-f]{40}$`)
)

// checkRules looks for what opens holes; see the comments at each.
func checkRules(t *testing.T, conf string) {
	t.Helper()
	forbidden := map[string]bool{
		// Under satisfy, an access phase in Lua that merely returns lets in.
		"satisfy": true, "allow": true, "deny": true, "auth_basic": true, "auth_basic_user_file": true,
		// Tenants' text could get there.
		"include": true, "return": true, "rewrite": true, "set": true, "alias": true, "root": true,
	}
	// On the socket of the controller: the lines of the administrator are not meant for it.
	open := strings.NewReplacer("allow all;", "", "auth_basic off;", "")
	for _, found := range directiveForm.FindAllStringSubmatch(open.Replace(conf), -1) {
		if forbidden[found[1]] {
			t.Errorf("the directive %s", found[1])
		}
	}
	for _, found := range location.FindAllStringSubmatch(conf, -1) {
		if name := found[1]; name != "/" && !locationName.MatchString(name) {
			t.Errorf("location %s, which a request's path could name", name)
		}
	}
	passes := proxyPass.FindAllStringSubmatch(conf, -1)
	if len(passes) == 0 {
		t.Error("nothing is proxied")
	}
	upstreams := []string{"http://hg_http", "https://hg_https", "grpc://hg_grpc", "grpcs://hg_grpcs", "hg_fastcgi", "http://hg_error_page", "https://hg_error_page", "http://hg_check_http$hg_call_uri", "https://hg_check_https$hg_call_uri"}
	for _, found := range passes {
		// $scheme is NGINX's own.
		literal := identity.ReplaceAllString(found[2], "")
		if !slices.Contains(upstreams, strings.NewReplacer("$scheme", "https", "${scheme}", "https").Replace(literal)) {
			t.Errorf("proxied to %s, which is not a literal upstream", found[2])
		}
		if !strings.Contains(conf, found[1]+"ignore_headers X-Accel-Redirect;") {
			t.Errorf("backends by %spass may redirect inside", found[1])
		}
	}
	checkChecks(t, conf)
}

var block = regexp.MustCompile(`(?s)\n        location (\S+|= \S+) \{\n(.*?)\n        \}`)

// checkChecks looks at the locations that another service is asked in: each
// must refuse by NGINX itself, and have Lua look once more. Those that the
// service is asked by must be no one else's, and a client that gets its answer stays refused.
func checkChecks(t *testing.T, conf string) {
	t.Helper()
	scheme := regexp.MustCompile(`_(https?|verified)(?:_answer)?$`)
	for _, found := range block.FindAllStringSubmatch(conf, -1) {
		name, text := found[1], found[2]
		asks := scheme.FindStringSubmatch(name)
		if asks == nil {
			if strings.Contains(text, "auth_request") {
				t.Errorf("location %s asks another service", name)
			}
			continue
		}
		wanted := []string{"auth_request _check_" + asks[1] + ";", "error_page 401 = @refused;", `access_by_lua_block { require("headgate.access").run`}
		if call := []string{"proxy_pass_request_body off;", `proxy_set_header Content-Length "";`, `proxy_set_header Proxy "";`}; strings.HasPrefix(name, "=") {
			wanted = append(call, "internal;", `require("headgate.access").auth_response()`)
		} else if strings.HasSuffix(name, "_answer") {
			wanted = append(call, `header_filter_by_lua_block { require("headgate.access").answered() }`, `body_filter_by_lua_block { require("headgate.access").answered_body() }`)
		}
		if strings.Contains(name, "_check_verified") {
			wanted = append(wanted, "proxy_ssl_verify on;", "proxy_ssl_trusted_certificate /", "proxy_ssl_name $hg_call_name;")
		}
		for _, w := range wanted {
			if !strings.Contains(text, w) {
				t.Errorf("location %s lacks %s", name, w)
			}
		}
	}
}

// allProfiles has every sample of every directive, and all combinations of those
// that depend on each other.
func allProfiles() []model.Profile {
	list := append(bufferProfiles(), withAccess(usualProfile()))
	for _, d := range feature.Directives(all.Features()) {
		for _, sample := range d.Samples {
			list = append(list, unlike(d.To(sample)))
		}
		switch {
		case d.Kind == directive.Ordered:
			for i, word := range d.Words {
				// A list that only removes is empty, and NGINX rejects it.
				if strings.HasPrefix(word, "!") {
					list = append(list, unlike(d.InOrder([]int{1, i})))
				} else {
					list = append(list, unlike(d.InOrder([]int{i})))
				}
			}
		case d.Kind == directive.Listed:
			list = append(list, unlike(d.Listing(d.Words[1:])), unlike(d.Listing(d.Words[:1])))
		case d.Kind == directive.Variable && !strings.HasPrefix(d.Name, "ssl_certificate"):
			list = append(list, unlike(d.Holds("x")))
		}
	}
	var pair []model.ProfileValue
	for _, d := range feature.Directives(all.Features()) {
		// NGINX wants a key with a certificate.
		if strings.HasPrefix(d.Name, "ssl_certificate") {
			pair = append(pair, d.Holds("x"))
		}
	}
	return append(list, unlike(pair...))
}

// TestIdentities: profiles that differ in anything that decides about TLS connections share
// none: each has an upstream block of its own. All of NGINX's directives about it are marked.
func TestIdentities(t *testing.T) {
	t.Parallel()
	directives := feature.Directives(all.Features())
	base := by(model.HTTP, true)
	var marked []directive.Directive
	for _, d := range directives {
		if strings.HasPrefix(d.Name, "ssl_") != d.TLS || d.TLS && (d.Order != directive.Same || d.Strictest != nil) {
			t.Errorf("%s: %+v", d.Name, d)
		}
		if d.TLS {
			marked = append(marked, d)
			base = base.With(valued(d, 1))
		}
	}
	if len(marked) < 9 {
		t.Errorf("only %d directives decide about TLS", len(marked))
	}
	profiles := []model.Profile{base}
	for _, d := range marked {
		profiles = append(profiles, base.With(valued(d, 2)), base.With(model.ProfileValue{Name: d.Name}))
	}
	seen := map[string]bool{}
	for _, p := range profiles {
		if seen[directives.Identity(p)] {
			t.Errorf("%+v shares connections with others", p)
		}
		seen[directives.Identity(p)] = true
		upstream := "upstream hg_https_" + directives.Identity(p) + " {"
		conf := render(t, environment(t), usualGlobals(), []model.Profile{p}, dictionaries)
		if strings.Count(conf, upstream) != 1 || strings.Count(conf, "proxy_pass https://hg_https_"+directives.Identity(p)+";") != 5 ||
			strings.Count(conf, "proxy_ssl_session_reuse off;") != 5 {
			t.Errorf("%+v does not have its upstream block", p)
		}
	}
	// What has nothing to do with TLS makes no new connections.
	if other := base.With(value("client_max_body_size", 5*mib)); directives.Identity(other) != directives.Identity(base) {
		t.Error("the identity depends on the size of bodies")
	}
	if plain := by(model.HTTP, false); directives.Identity(plain) != "" || directives.Identity(by(model.HTTP, true)) != "" {
		t.Error("an identity of nothing")
	}
}

// valued is the first or the second of two values.
func valued(d directive.Directive, which int) model.ProfileValue {
	switch d.Kind {
	case directive.Variable:
		return d.Holds(fmt.Sprint(which))
	case directive.Ordered:
		return d.InOrder([]int{which})
	case directive.File:
		return d.Contains(model.Content{Name: fmt.Sprint(which)})
	}
	return d.To(int64(which))
}

// bufferProfiles has what depends on the buffers: the least, a middle and the
// largest of what may be busy beside every size and number. How large the file
// may be depends on the size alone: each two of file, busy and size, or number,
// meet.
func bufferProfiles() []model.Profile {
	var list []model.Profile
	for i, size := 0, int64(kib); size <= 16*mib; i, size = i+1, size*2 {
		files := []int64{0, size, gib, 64 * gib}
		for j, buffers := 0, int64(2); buffers <= 256; j, buffers = j+1, buffers*2 {
			most := size * buffers / 2
			for k, busy := range []int64{size, min(2*size, most), most} {
				file := files[(i+j+k)%len(files)]
				list = append(list, unlike(value("buffer_size", size), value("buffers", buffers), value("busy_buffers_size", busy), value("max_temp_file_size", file)))
			}
		}
	}
	return list
}

// TestNginxTakesLargeDictionaries: it knows no gigabytes of memory.
func TestNginxTakesLargeDictionaries(t *testing.T) {
	t.Parallel()
	large := nginxconf.FirstDictionaries(1_100_000, 0)
	if large.Units != 1<<30 {
		t.Fatalf("%d bytes", large.Units)
	}
	env := realEnvironment(t)
	testConfiguration(t, env, render(t, env, usualGlobals(), nil, large))
}

// NGINX takes each directive in each way of asking backends.
func TestNginxTakesEveryProfile(t *testing.T) {
	t.Parallel()
	every := allProfiles()
	names := map[string]model.Profile{}
	for name, way := range map[string]model.Profile{
		"http": {}, "https": {TLS: true}, "grpc": {Protocol: model.GRPC}, "grpcs": {Protocol: model.GRPC, TLS: true}, "fastcgi": {Protocol: model.FastCGI},
	} {
		env := realEnvironment(t)
		distinct := map[string]model.Profile{}
		lines := map[string]bool{}
		for _, p := range every {
			p.Protocol, p.TLS = way.Protocol, way.TLS
			if other, ok := names[p.Name()]; ok && other != p {
				t.Fatalf("%+v and %+v have one name", p, other)
			}
			names[p.Name()] = p
			// Which values go together is tested over HTTP; the others test each line.
			isNew := name == "http"
			for _, line := range append(env.Directives.Lines(p), fmt.Sprint(p.Access)) {
				isNew, lines[line] = isNew || !lines[line], true
			}
			if isNew {
				// Protocols don't have all directives.
				distinct[fmt.Sprint(p.Access, env.Directives.Lines(p))] = p
			}
		}
		profiles := slices.SortedFunc(maps.Values(distinct), func(a, b model.Profile) int { return strings.Compare(a.Name(), b.Name()) })
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := render(t, env, usualGlobals(), profiles, dictionaries)
			checkRules(t, conf)
			testConfiguration(t, env, conf)
		})
	}
	_, err := nginxconf.Render(environment(t), usualGlobals(), []model.Profile{{Protocol: model.FastCGI, TLS: true}}, false, dictionaries)
	if err == nil {
		t.Error("FastCGI has TLS")
	}
}

// Every profile that the features can make must be among those that were
// tested.
func TestFeaturesMakeOnlyKnownProfiles(t *testing.T) {
	t.Parallel()
	directives := feature.Directives(all.Features())
	type buffers struct{ size, number int64 }
	known := map[buffers]bool{}
	for _, p := range bufferProfiles() {
		known[buffers{p.Value("buffer_size"), p.Value("buffers")}] = true
	}
	isPower := func(n int64) bool { return n > 0 && n&(n-1) == 0 }
	check := func(annotations map[string]string) {
		p := profileOf(annotations)
		size, number, busy, file := p.Value("buffer_size"), p.Value("buffers"), p.Value("busy_buffers_size"), p.Value("max_temp_file_size")
		if !known[buffers{size, number}] || !isPower(busy) || busy < size || busy > size*number/2 ||
			file != 0 && (!isPower(file) || file < size || file > 64*gib) {
			t.Errorf("%v: %+v", annotations, p)
		}
		for _, d := range directives {
			if d.Samples != nil && !(d.Omits && d.Of(p) == 0) && !slices.Contains(d.Samples, d.Of(p)) {
				t.Errorf("%v: %s has the value %d, which is not a sample", annotations, d.Name, d.Of(p))
			}
		}
		if name := directives.Undeclared(p); name != "" {
			t.Errorf("%v: %s is not declared", annotations, name)
		}
	}
	sizes := []string{"", "0", "1", "1023", "1k", "3k", "4k", "7m", "16m", "17m", "5g", "500g", "501g", "x"}
	for _, size := range sizes {
		for _, number := range []string{"0", "1", "2", "3", "100", "256", "257"} {
			for _, other := range sizes {
				check(map[string]string{
					"proxy-buffer-size": size, "proxy-buffers-number": number, "proxy-body-size": other,
					"proxy-busy-buffers-size": other, "proxy-max-temp-file-size": other, "client-body-buffer-size": other,
				})
			}
		}
	}
	for _, seconds := range []string{"0", "1", "3", "31", "3600", "3601", "99999999", "x"} {
		for _, outcomes := range []string{"off", "error", "non_idempotent", "http_503 non_idempotent", "x", ""} {
			check(map[string]string{"proxy-next-upstream-timeout": seconds, "proxy-next-upstream": outcomes})
		}
	}
}

// profileOf is what the features make of annotations.
func profileOf(annotations map[string]string) model.Profile {
	schema := feature.NewSchema("p", all.Features())
	config, _ := schema.Config(nil)
	prefixed := map[string]string{}
	for name, value := range annotations {
		prefixed["p/"+name] = value
	}
	values := schema.Parse(model.Origin{}, prefixed, config).Values()
	out := feature.RouteOut{Report: feature.NewReport(values, ""), Route: &model.Route{}}
	for _, f := range all.Features() {
		if f.Route != nil {
			f.Route(values, &out)
		}
	}
	return out.Route.Profile
}

func TestPathsAndWords(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"/", "/run/headgate", "/tmp/hg-1/a_b.c@d+e,f=g~h"} {
		if _, err := nginxconf.NewPath(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "run", "/a b", "/a;b", "/a\nb", "/a\"b", "/a'b", "/a{b", "/a$b", "/a\\b", "/a\x00", "/a#b", "/é", "/a\n"} {
		if _, err := nginxconf.NewPath(bad); err == nil {
			t.Errorf("the path %q was taken", bad)
		}
	}
	for _, bad := range []string{"a b", "a;", "a\n", "a/b", "$a", "é"} {
		if _, err := nginxconf.NewWord(bad); err == nil {
			t.Errorf("the word %q was taken", bad)
		}
	}
}
