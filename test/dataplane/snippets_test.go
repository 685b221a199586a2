package dataplane_test

import (
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/headgatetest"
	"github.com/headgate/headgate/internal/model"
)

// A feature can let the administrator write lines of nginx.conf. Where NGINX does not
// take them, the last good configuration stays.
func TestFeaturesRenderTheAdministratorsText(t *testing.T) {
	t.Parallel()
	key := func(name string) feature.Setting[model.AdminText] {
		return feature.Setting[model.AdminText]{Key: name, Parse: model.NewAdminText, Scope: feature.ScopeProcess}
	}
	main, http, server, location := key("main-snippet"), key("http-snippet"), key("server-snippet"), key("location-snippet")
	features := append(all.Features(), feature.Feature{
		Name: "snippets", Settings: []feature.AnySetting{main, http, server, location},
		Process: func(v feature.Values, out *feature.ProcessOut) {
			out.Process.Snippets = model.Snippets{Main: main.Get(v), HTTP: http.Get(v), Server: server.Get(v), Location: location.Get(v)}
		},
	})
	g := headgatetest.Start(t, headgatetest.Options{Features: features, Timing: headgatetest.Hasty(), Manifests: served("one", headgatetest.StartEcho(t, "one")) +
		headgatetest.Ingress("plain", "a.test", "/", "one") + headgatetest.Ingress("jumps", "a.test", "/jumps", "one", "proxy-body-size: 1k")})
	g.ApplyReloading(headgatetest.Config("main-snippet: env MINE;", `http-snippet: map $uri $mine { default "{;}$uri"; }`,
		`server-snippet: more_set_headers "X-Server: yes";`, "location-snippet: add_header X-Mine $mine;"))
	for range 2 {
		for _, path := range []string{"/", "/jumps"} {
			header := g.Get("a.test", path).WantStatus(t, 200).Header
			if header.Get("X-Mine") != "{;}"+path || header.Get("X-Server") != "yes" {
				t.Errorf("%s: %v", path, header)
			}
		}
		g.Put(headgatetest.Config("http-snippet: no_such_directive;"))
		headgatetest.Eventually(t, "NGINX rejects it", func() bool { return g.Value(g.Metrics.ReloadFailures) > 0 })
	}
}
