package plan_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/plan"
	"github.com/headgate/headgate/lua"
)

var update = flag.Bool("update", false, "write the golden files anew")

const kib, mib, gib = 1 << 10, 1 << 20, 1 << 30

var dictionaries = plan.Dictionaries{Number: 1, Units: mib, Versions: mib, Certificates: mib}

// usualProfile is the default one of an empty ConfigMap.
func usualProfile() model.Profile {
	return model.Profile{RequestBuffering: true, BufferSize: 4 * kib, Buffers: 4, BodyStep: mib}
}

func usualProcess() model.Process {
	return model.Process{
		ShutdownTimeout: 240 * time.Second, AccessLog: true, HTTP2: true, ClientKeepalive: 75 * time.Second, ClientRequests: 1000,
		ClientHeaderTimeout: time.Minute, ClientBodyTimeout: time.Minute,
		BackendConnections: 320, BackendRequests: 10000, BackendIdle: time.Minute, BackendAge: time.Hour,
	}
}

func usualGlobals() model.Globals {
	return model.Globals{Process: usualProcess(), Default: usualProfile()}
}

// path and word are of texts that the tests know to be good.
func path(t testing.TB, text string) plan.Path {
	t.Helper()
	p, err := plan.NewPath(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func environment(t testing.TB) plan.Environment {
	t.Helper()
	user, err := plan.NewWord("www-data")
	if err != nil {
		t.Fatal(err)
	}
	return plan.Environment{
		RunDir: path(t, "/run/headgate"), User: user, Modules: []plan.Path{path(t, "/usr/lib/nginx/modules/ngx_http_lua_module.so")},
		HTTPPort: 80, HTTPSPort: 443, HealthPath: path(t, "/healthz"), AccessLog: path(t, "/dev/stdout"), Workers: 2, OpenFiles: 65536, Backlog: 511,
	}
}

type renderCase struct {
	name         string
	change       func(*plan.Environment, *model.Globals)
	profiles     []model.Profile
	dictionaries plan.Dictionaries
}

func renderCases() []renderCase {
	grown := plan.Dictionaries{Number: 2, Units: 2 * mib, Versions: 2 * mib, Certificates: mib, Previous: &plan.Dictionaries{Number: 1, Units: mib, Versions: mib, Certificates: mib}}
	return []renderCase{
		{"usual", func(*plan.Environment, *model.Globals) {}, nil, dictionaries},
		{"profiles", func(*plan.Environment, *model.Globals) {}, []model.Profile{
			{Buffering: true, RequestBuffering: true, BufferSize: 8 * kib, Buffers: 2, BodyStep: 5 * mib, MeasureBody: true},
			{BufferSize: 16 * mib, Buffers: 256, BodyStep: 0},
			{RequestBuffering: true, BufferSize: kib, Buffers: 4, BodyStep: 500 * gib},
		}, dictionaries},
		{"settings", func(e *plan.Environment, g *model.Globals) {
			e.IPv6, e.User, e.OpenFiles = true, plan.Word{}, 0
			g.Process = model.Process{
				Workers: 7, ShutdownTimeout: 1500 * time.Millisecond, ServerTokens: true, ClientRequests: 1,
				ClientHeaderTimeout: time.Second, ClientBodyTimeout: time.Second, BackendRequests: 1, BackendIdle: time.Second, BackendAge: time.Second,
			}
			g.Default.MeasureBody = true
		}, nil, dictionaries},
		{"growing", func(*plan.Environment, *model.Globals) {}, nil, grown},
		{"newer-nginx", func(e *plan.Environment, _ *model.Globals) { e.HTTP2Directive = true }, nil, dictionaries},
	}
}

func render(t testing.TB, env plan.Environment, globals model.Globals, profiles []model.Profile, d plan.Dictionaries) string {
	t.Helper()
	files, err := plan.Render(env, globals, profiles, d)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 {
		t.Fatalf("%d files", len(files))
	}
	return string(files[plan.NginxConf])
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, c := range renderCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env, globals := environment(t), usualGlobals()
			c.change(&env, &globals)
			got := render(t, env, globals, c.profiles, c.dictionaries)
			file := filepath.Join("testdata", c.name+".conf")
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
			checkRules(t, got)

			env, globals = realEnvironment(t), usualGlobals()
			c.change(&env, &globals)
			env.HTTP2Directive = realEnvironment(t).HTTP2Directive
			testConfiguration(t, env, render(t, env, globals, c.profiles, c.dictionaries))
		})
	}
}

// realEnvironment is one in which NGINX can test a configuration.
func realEnvironment(t *testing.T) plan.Environment {
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
	dir, err := nginx.OpenRunDir(parent)
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
	if err := dir.Write(map[string][]byte{"generation": []byte("1\n")}); err != nil {
		t.Fatal(err)
	}
	env := environment(t)
	env.RunDir, env.HTTP2Directive, env.Modules = path(t, dir.Path()), capabilities.HTTP2Directive, nil
	// -t binds the ports, which others may have.
	env.HTTPPort, env.HTTPSPort, env.AccessLog = 0, 0, path(t, "/dev/null")
	for _, module := range capabilities.Modules {
		env.Modules = append(env.Modules, path(t, module))
	}
	if os.Geteuid() != 0 {
		env.User = plan.Word{}
	}
	return env
}

var listens = regexp.MustCompile(`listen (?:0\.0\.0\.0|\[::\]):0 default_server`)

func testConfiguration(t *testing.T, env plan.Environment, conf string) {
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
	directive = regexp.MustCompile(`(?m)^\s*(\w+)\b`)
	location  = regexp.MustCompile(`(?m)^\s*location (.*) \{$`)
	proxyPass = regexp.MustCompile(`(?m)^\s*\w+_pass (.*);$`)
)

// checkRules looks for what opens holes; see the comments at each.
func checkRules(t *testing.T, conf string) {
	t.Helper()
	forbidden := map[string]bool{
		// Under satisfy, an access phase in Lua that merely returns lets in.
		"satisfy": true, "allow": true, "deny": true, "auth_basic": true, "auth_basic_user_file": true,
		// Tenants' text could get there.
		"include": true, "return": true, "rewrite": true, "set": true, "alias": true, "root": true,
		// Keeps backends out of other locations.
		"internal": true,
	}
	for _, found := range directive.FindAllStringSubmatch(conf, -1) {
		if forbidden[found[1]] {
			t.Errorf("the directive %s", found[1])
		}
	}
	for _, found := range location.FindAllStringSubmatch(conf, -1) {
		if name := found[1]; name != "/" && !regexp.MustCompile(`^@(p_[0-9a-f]{12}|drain|nginx_status)$`).MatchString(name) {
			t.Errorf("location %s, which a request's path could name", name)
		}
	}
	passes := proxyPass.FindAllStringSubmatch(conf, -1)
	if len(passes) == 0 {
		t.Error("nothing is proxied")
	}
	for _, found := range passes {
		if found[1] != "http://hg_http" {
			t.Errorf("proxied to %s, which is no literal upstream", found[1])
		}
	}
	if !strings.Contains(conf, "proxy_ignore_headers X-Accel-Redirect;") {
		t.Error("backends may redirect inside")
	}
}

// allProfiles has every value of every field, and all combinations of those
// that depend on each other.
func allProfiles() []model.Profile {
	var list []model.Profile
	for _, flags := range []int{0, 1, 2, 3} {
		for size := int64(kib); size <= 16*mib; size *= 2 {
			for buffers := 2; buffers <= 256; buffers *= 2 {
				list = append(list, model.Profile{Buffering: flags&1 > 0, RequestBuffering: flags&2 > 0, BufferSize: size, Buffers: buffers, BodyStep: mib})
			}
		}
	}
	for _, unit := range []int64{kib, mib, gib} {
		for _, n := range []int64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500} {
			for _, measure := range []bool{false, true} {
				list = append(list, model.Profile{RequestBuffering: true, BufferSize: 4 * kib, Buffers: 4, BodyStep: n * unit, MeasureBody: measure})
			}
		}
	}
	return list
}

func TestNginxTakesEveryProfile(t *testing.T) {
	t.Parallel()
	distinct := map[string]model.Profile{}
	for _, p := range allProfiles() {
		if other, ok := distinct[p.Name()]; ok && other != p {
			t.Fatalf("%+v and %+v have one name", p, other)
		}
		distinct[p.Name()] = p
	}
	var profiles []model.Profile
	for _, p := range distinct {
		profiles = append(profiles, p)
	}
	env := realEnvironment(t)
	conf := render(t, env, usualGlobals(), profiles, dictionaries)
	checkRules(t, conf)
	testConfiguration(t, env, conf)
}

// Every profile that the features can make must be among those that were
// tested.
func TestFeaturesMakeOnlyKnownProfiles(t *testing.T) {
	t.Parallel()
	buffers := map[[2]int64]bool{}
	steps := map[int64]bool{}
	for _, p := range allProfiles() {
		buffers[[2]int64{p.BufferSize, int64(p.Buffers)}] = true
		steps[p.BodyStep] = true
	}
	for _, size := range []string{"0", "1", "1023", "1k", "3k", "4k", "7m", "16m", "17m"} {
		for _, number := range []string{"0", "1", "2", "3", "100", "256", "257"} {
			for _, body := range []string{"0", "1", "3k", "1m", "77m", "500g", "501g"} {
				p := profileOf(map[string]string{"proxy-buffer-size": size, "proxy-buffers-number": number, "proxy-body-size": body})
				if !buffers[[2]int64{p.BufferSize, int64(p.Buffers)}] || !steps[p.BodyStep] {
					t.Errorf("%s buffers of %s, bodies of %s: %+v", number, size, body, p)
				}
			}
		}
	}
}

// profileOf is what the features make of annotations.
func profileOf(annotations map[string]string) model.Profile {
	config, _ := feature.NewConfig(all.Features(), nil)
	prefixed := map[string]string{}
	for name, value := range annotations {
		prefixed["p/"+name] = value
	}
	var route model.Route
	for _, f := range all.Features() {
		if f.Route != nil {
			f.Route(feature.NewReader("p", prefixed, config), &route)
		}
	}
	return route.Profile
}

func TestPathsAndWords(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"/", "/run/headgate", "/tmp/hg-1/a_b.c@d+e,f=g~h"} {
		if _, err := plan.NewPath(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "run", "/a b", "/a;b", "/a\nb", "/a\"b", "/a'b", "/a{b", "/a$b", "/a\\b", "/a\x00", "/a#b", "/é", "/a\n"} {
		if _, err := plan.NewPath(bad); err == nil {
			t.Errorf("the path %q was taken", bad)
		}
	}
	for _, bad := range []string{"a b", "a;", "a\n", "a/b", "$a", "é"} {
		if _, err := plan.NewWord(bad); err == nil {
			t.Errorf("the word %q was taken", bad)
		}
	}
}
