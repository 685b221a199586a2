package upstreamvhost_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

func TestHost(t *testing.T) {
	t.Parallel()
	manifests := headgatetest.Service("web") + headgatetest.Endpoints("web", headgatetest.StartEcho(t, "web"))
	hosts := 0
	host := func(annotations ...string) string {
		hosts++
		name := fmt.Sprintf("h%d", hosts)
		manifests += headgatetest.Ingress(name, name+".test", "/", "web", annotations...)
		return name + ".test"
	}
	plain := host()
	literal := host("upstream-vhost: internal.example:8080")
	service := host("upstream-vhost: $service_name.$namespace.svc")
	argument := host("upstream-vhost: $arg_tenant")
	profile := host("upstream-vhost: internal.example", "proxy-body-size: 3m")
	space := host("upstream-vhost: ")
	group := "group.test"
	manifests += headgatetest.Ingress("group", group, "/t/([a-z]+)/(.*)", "web", "use-regex: true", "upstream-vhost: $1.team.example") +
		headgatetest.Ingress("group2", group, "/r/([a-z]+)/(.*)", "web", "rewrite-target: /$2", "upstream-vhost: $1.team.example")
	ungrouped := host("upstream-vhost: $1.team.example")
	denied := []string{host("upstream-vhost: bad host;"), host("upstream-vhost: $hg_backend")}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})

	for _, c := range []struct{ host, path, want string }{
		{plain, "/", plain}, {literal, "/", "internal.example:8080"}, {service, "/x", "web.default.svc"},
		{argument, "/?tenant=a.example", "a.example"}, {argument, "/", argument}, {argument, "/?tenant=", argument},
		{argument, "/?tenant=%0d%0aX-Evil:1", "%0d%0aX-Evil:1"},
		{group, "/t/blue/x", "blue.team.example"}, {group, "/r/red/x", "red.team.example"}, {ungrouped, "/", ".team.example"},
		{profile, "/", "internal.example"}, {space, "/", space},
	} {
		for _, http2 := range []bool{false, true} {
			r := headgatetest.Request{Host: c.host, Path: c.path, HTTP2: http2}
			if http2 {
				r.Scheme = "https"
			}
			e := g.Do(r).WantStatus(t, 200).Echo
			if e.Host != c.want || e.Header.Get("X-Evil") != "" {
				t.Errorf("%s%s (HTTP/2 %v): the backend got the Host %q and %v, want %q", c.host, c.path, http2, e.Host, e.Header, c.want)
			}
			if got := e.Header.Get("X-Forwarded-Host"); got != c.host {
				t.Errorf("%s%s (HTTP/2 %v): X-Forwarded-Host %q", c.host, c.path, http2, got)
			}
		}
	}
	for _, name := range denied {
		g.Get(name, "/").WantStatus(t, 503)
	}
}

// A change acts on its own route, without a reload.
func TestChange(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("web") + headgatetest.Endpoints("web", headgatetest.StartEcho(t, "web")) +
		headgatetest.Ingress("one", "a.test", "/one", "web", "upstream-vhost: one.example") + headgatetest.Ingress("two", "a.test", "/two", "web")})
	check := func(path, want string) {
		t.Helper()
		r := g.Do(headgatetest.Request{Host: "a.test", Path: path, Header: http.Header{"X-Forwarded-Host": {"client.example"}}}).WantStatus(t, 200)
		if r.Echo.Host != want || r.Echo.Header.Get("X-Forwarded-Host") != "a.test" {
			t.Errorf("%s: the backend got the Host %q and %v, want %q", path, r.Echo.Host, r.Echo.Header, want)
		}
	}
	check("/one", "one.example")
	check("/two", "a.test")
	g.Apply(headgatetest.Ingress("one", "a.test", "/one", "web", "upstream-vhost: new.example"))
	check("/one", "new.example")
	g.Apply(headgatetest.Ingress("one", "a.test", "/one", "web"))
	check("/one", "a.test")
	check("/two", "a.test")
	if n := g.Value(g.Metrics.Reloads); n != 0 {
		t.Errorf("%d reloads, want none", n)
	}
}
