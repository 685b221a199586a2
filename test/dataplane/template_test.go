package dataplane_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/plan/nginxconf"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A mountedTemplate is a file as a mounted ConfigMap has it: a link to a link to a folder, which is exchanged.
type mountedTemplate struct {
	t       *testing.T
	folder  string
	version int
}

func (m *mountedTemplate) path() string { return filepath.Join(m.folder, "nginx.tmpl") }

// put exchanges the folder, without the file if the text is empty.
func (m *mountedTemplate) put(text string) {
	m.t.Helper()
	m.version++
	data := filepath.Join(m.folder, "..version"+string(rune('a'+m.version)))
	must := func(err error) {
		m.t.Helper()
		if err != nil {
			m.t.Fatal(err)
		}
	}
	must(os.Mkdir(data, 0o755))
	if text != "" {
		must(os.WriteFile(filepath.Join(data, "nginx.tmpl"), []byte(text), 0o600))
	}
	must(os.Symlink(filepath.Base(data), filepath.Join(m.folder, "..tmp")))
	must(os.Rename(filepath.Join(m.folder, "..tmp"), filepath.Join(m.folder, "..data")))
	if m.version == 1 {
		must(os.Symlink("..data/nginx.tmpl", m.path()))
	}
}

// withHeader is the built-in template, with a header.
func withHeader(value string) string {
	return strings.Replace(nginxconf.Template(), "        location @nginx_status {", "        more_set_headers \"X-Template: "+value+"\";\n        location @nginx_status {", 1)
}

// TestTemplate: a template is replaced, truncated and removed while clients ask, and none sees more of
// that than its effect.
func TestTemplate(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	m := &mountedTemplate{t: t, folder: t.TempDir()}
	m.put("")
	g := headgatetest.Start(t, headgatetest.Options{
		Template:  m.path(),
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("a", "a.test", "/", "one"),
	})
	seen := func() string { return g.Get("a.test", "/").WantStatus(t, 200).Header.Get("X-Template") }
	busy := startLoad(t, 4, func(int) func() error {
		l := &line{port: g.HTTP, idle: edge.DefaultTiming().Drain * 4 / 5}
		t.Cleanup(l.close)
		return func() error { return l.post("a.test") }
	})
	becomes := func(what, want string) {
		t.Helper()
		headgatetest.Eventually(t, what+": X-Template is "+want, func() bool { return seen() == want })
	}
	refused := func(what, reason, stays string) {
		t.Helper()
		headgatetest.Eventually(t, what+": a finding has "+reason, func() bool { return strings.Contains(g.Log.String(), reason) })
		g.Apply(headgatetest.Ingress("more", "more.test", "/", "one", "proxy-body-size: 3k"))
		if got := seen(); got != stays {
			t.Errorf("%s: X-Template is %q, want %q", what, got, stays)
		}
	}
	m.put(withHeader("one"))
	becomes("mounted", "one")
	m.put(withHeader("two"))
	becomes("exchanged", "two")
	m.put(nginxconf.Template()[:len(nginxconf.Template())/2])
	refused("cut", "object=file", "two")
	m.put(strings.Replace(withHeader("bad"), "lua_shared_dict hg_control 1m;", "", 1))
	refused("without a dictionary", "lacks what Headgate needs: http > lua_shared_dict hg_control 1m", "two")
	m.put(strings.Replace(withHeader("bad"), "tcp_nopush on;", "tcp_nopush maybe;", 1))
	refused("that NGINX rejects", `invalid value \"maybe\"`, "two")
	m.put("{{ $all := . }}{{ $cfg := $all.Cfg }}")
	refused("of ingress-nginx", "this is a template of ingress-nginx", "two")
	m.put(withHeader("three"))
	becomes("good again", "three")
	m.put("")
	becomes("removed", "")
	if err := os.WriteFile(filepath.Join(m.folder, "..data", "nginx.tmpl"), []byte(withHeader("four")), 0o600); err != nil {
		t.Fatal(err)
	}
	becomes("written in place", "four")
	if err := os.Truncate(m.path(), 0); err != nil {
		t.Fatal(err)
	}
	refused("truncated", "must begin with", "four")
	busy.wantNoneWrong(t, 100)
}

// TestBadTemplateAtStart: nothing is served until the template is right, or gone.
func TestBadTemplateAtStart(t *testing.T) {
	t.Parallel()
	m := &mountedTemplate{t: t, folder: t.TempDir()}
	m.put("events {}")
	g := headgatetest.Start(t, headgatetest.Options{
		Template: m.path(), Timing: headgatetest.Hasty(),
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("a", "a.test", "/", "one"),
	})
	g.Get("a.test", "/").WantStatus(t, 503)
	m.put("")
	headgatetest.Eventually(t, "requests are served", func() bool { return g.Get("a.test", "/").Status == 200 })
}
