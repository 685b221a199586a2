package dataplane_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// trusting are the real features and one whose annotation or key "trusts" names which of
// the authorities backends are verified with.
func trusting(authorities map[string]string) []feature.Feature {
	trusts := feature.Setting[string]{Annotation: "trusts", Key: "trusts", Parse: func(text string) (string, error) { return text, nil }}
	verify := directive.Directive{Name: "ssl_verify", Only: []model.Protocol{model.HTTP, model.GRPC}}
	authority := directive.Directive{Name: "ssl_trusted_certificate", Only: verify.Only, Kind: directive.File}
	// The feature that declares these directives checks what it has NGINX read.
	others := slices.DeleteFunc(all.Features(), func(f feature.Feature) bool { return f.Name == "backend_protocol" })
	return append(others, feature.Feature{
		Name: "trusting", Settings: []feature.AnySetting{trusts}, Directives: directive.List{verify, authority},
		Route: func(v feature.Values, out *feature.RouteOut) {
			if text, ok := authorities[trusts.Get(v)]; ok {
				content := model.NewContent([]byte(text))
				out.Route.Profile = out.Route.Profile.With(verify.When(true), authority.Contains(content))
				out.Route.Profile.TLS = true
				out.Route.Files = append(out.Route.Files, content)
			}
		},
	})
}

// A profile may name a file. The first route with it costs a reload, and the next reload
// without such a route removes it.
func TestProfilesNameFiles(t *testing.T) {
	t.Parallel()
	// NGINX calls backends by the name of the upstream block.
	own, other, third := headgatetest.NewKeyPair(t, "own", "hg_https"), headgatetest.NewKeyPair(t, "other", "hg_https"), headgatetest.NewKeyPair(t, "third", "hg_https")
	certificate, err := tls.X509KeyPair([]byte(own.Certificate), []byte(own.Key))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	route := func(name, trusts string) string {
		return headgatetest.Ingress(name, name+".test", "/", "own", "ssl-redirect: false", "trusts: "+trusts)
	}
	g := headgatetest.Start(t, headgatetest.Options{
		Timing: headgatetest.Hasty(), Features: trusting(map[string]string{"own": own.Certificate, "other": other.Certificate, "third": third.Certificate, "bad": "bad"}),
		Manifests: served("own", server.Listener.Addr().String()) + route("own", "own") + route("other", "other"),
	})
	files := func(want int) {
		t.Helper()
		entries, err := os.ReadDir(filepath.Join(g.RunDir.Path(), directive.Files))
		if err != nil || len(entries) != want {
			t.Errorf("the files are %v, %v; want %d", entries, err, want)
		}
	}
	files(2)
	g.Get("own.test", "/").WantStatus(t, 404)
	g.Get("other.test", "/").WantStatus(t, 502)
	before := g.Value(g.Metrics.Reloads)
	g.Apply(route("same", "own"))
	g.Delete(route("other", "other"))
	if n := g.Value(g.Metrics.Reloads) - before; n != 0 {
		t.Errorf("%d reloads for files that are there", n)
	}
	files(2)
	g.Get("same.test", "/").WantStatus(t, 404)
	g.ApplyReloading(route("third", "third"))
	files(2)
	g.Get("third.test", "/").WantStatus(t, 502)
	// NGINX rejects this one, and keeps what it has.
	g.Put(route("bad", "bad"))
	headgatetest.Eventually(t, "the reload fails", func() bool { return g.Value(g.Metrics.ReloadFailures) > 0 })
	g.Get("own.test", "/").WantStatus(t, 404)
	g.Apply(headgatetest.Ingress("bad", "bad.test", "/", "own"))
	g.ApplyReloading(headgatetest.Config("trusts: own"))
	files(2)
	g.Get("bad.test", "/").WantStatus(t, 404)
}
