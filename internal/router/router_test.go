package router_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/router"
	"github.com/headgate/headgate/internal/syntax/pcre"
	"github.com/headgate/headgate/internal/unit"
)

// shop is a clusterFixture with known answers.
func shop() []unit.Unit {
	web := model.Origin{Namespace: "shop", Ingress: "web"}
	return []unit.Unit{
		unit.FromName(model.Name{Name: "_", Host: "_"}),
		unit.FromName(model.Name{Name: "shop.test", Host: "shop.test"}),
		unit.FromName(model.Name{Name: "*.shop.test", Host: "*.shop.test", HasTLS: true, Certificate: "c1"}),
		unit.FromName(model.Name{Name: "lost.test", Host: "lost.test"}),
		unit.FromNamePatterns(model.NamePatterns{
			LeadingWildcards:  []model.Name{{Name: "*.net", Host: "shop.test"}},
			TrailingWildcards: []model.Name{{Name: "www.*", Host: "shop.test"}},
			Regexes: []model.Name{
				{Name: `~^v[0-9]+$`, Host: "*.shop.test"}, {Name: "~^(a+)+$", Host: "_"}, {Name: "~^a+c$", Host: "shop.test"},
				{Name: `~^[\[0-9]`, Host: "shop.test"}, {Name: "~^_$", Host: "shop.test"},
			},
		}),
		unit.FromHost(model.Host{Name: "_"}),
		unit.FromHost(model.Host{Name: "shop.test", Routes: []model.Route{
			{Kind: model.Exact, Path: "/login", Backend: "shop/login/80", Origin: web},
			{Kind: model.Prefix, Path: "/cart", Slash: true, Backend: "shop/cart/80", Origin: web},
			{Kind: model.Prefix, Path: "/cart", Denied: true},
		}}),
		unit.FromHost(model.Host{Name: "*.shop.test", Routes: []model.Route{
			{Kind: model.Pattern, Path: "^/(a+)+$"}, {Kind: model.Pattern, Path: "^/API/v[0-9]"},
		}}),
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	r := newRouter(shop())
	for _, c := range []struct {
		host, path string
		name       string
		by         router.By
		status     int
		page       router.Page
		route      int // -1 for none
	}{
		{"shop.test", "/login", "shop.test", router.ByName, 0, "", 0},
		{"shop.test", "/cart", "shop.test", router.ByName, 0, "", 2},
		{"shop.test", "/cart/1", "shop.test", router.ByName, 0, "", 1},
		{"shop.test", "/healthz", "shop.test", router.ByName, 404, "", -1},
		{"a.shop.test", "/api/V1", "*.shop.test", router.ByWildcard, 0, "", 1},
		{"a.shop.test", "/" + strings.Repeat("a", 60) + "!", "*.shop.test", router.ByWildcard, 500, "", -1},
		{"a.b.shop.test", "/", "_", router.ByDefault, 404, "", -1},
		{"a.net", "/login", "*.net", router.ByLeadingWildcard, 0, "", 0},
		{"www.test", "/login", "www.*", router.ByTrailingWildcard, 0, "", 0},
		{"v1", "/x", "~^v[0-9]+$", router.ByRegex, 404, "", -1},
		// The second expression reaches its limit: the third one is tried, and other hosts are not affected.
		{strings.Repeat("a", 60) + "b", "/", "_", router.ByDefault, 404, "", -1},
		{strings.Repeat("a", 60) + "c", "/login", "~^a+c$", router.ByRegex, 0, "", 0},
		// Patterns don't match addresses.
		{"10.0.0.17", "/healthz", "_", router.ByDefault, 0, router.HealthPage, -1},
		{"[2001:db8::1]", "/healthz", "_", router.ByDefault, 0, router.HealthPage, -1},
		{"10.0.0.1717", "/login", `~^[\[0-9]`, router.ByRegex, 0, "", 0},
		{"10.0.0.1.7", "/login", `~^[\[0-9]`, router.ByRegex, 0, "", 0},
		{"lost.test", "/", "lost.test", router.ByName, 503, "", -1},
		{"*.shop.test", "/", "_", router.ByDefault, 404, "", -1},
		{"_", "/healthz", "_", router.ByDefault, 0, router.HealthPage, -1},
		{"other.test", "/nginx_status", "_", router.ByDefault, 0, router.StatusPage, -1},
	} {
		d := r.Route(c.host, c.path)
		route := -1
		if d.Route != nil {
			route = d.Route.Index
		}
		if d.Name.Name.Name != c.name || d.Name.By != c.by || d.Status != c.status || d.Page != c.page || route != c.route {
			t.Errorf("%.20s%.20s: %+v, route %d", c.host, c.path, d, route)
		}
		if (d.Err != nil) != (c.status >= 500) {
			t.Errorf("%.20s%.20s: the error %v", c.host, c.path, d.Err)
		}
	}
	if d := r.Route("shop.test", "/login"); d.Route.Origin.Ingress != "web" || d.Route.Backend != "shop/login/80" {
		t.Errorf("%+v", d.Route)
	}
	if d := r.Route("a.shop.test", "/"+strings.Repeat("a", 60)+"!"); !errors.Is(d.Err, pcre.ErrLimit) {
		t.Errorf("the error %v does not say that a pattern gave up", d.Err)
	}
}

// TestRedirect has only the route with the slash.
func TestRedirect(t *testing.T) {
	t.Parallel()
	r := newRouter([]unit.Unit{
		unit.FromName(model.Name{Name: "_", Host: "_"}),
		unit.FromHost(model.Host{Name: "_", Routes: []model.Route{{Kind: model.Prefix, Path: "/a", Slash: true, Backend: "a/b/1"}}}),
	})
	if d := r.Route("x", "/a"); d.Status != 301 || d.Route == nil || d.Route.Backend != "a/b/1" {
		t.Errorf("%+v", d)
	}
}

// TestNewestUnit changes, breaks and removes a unit under a Router.
func TestNewestUnit(t *testing.T) {
	t.Parallel()
	key := unit.Key{Kind: unit.Host, Name: "_"}
	units := map[unit.Key]unit.Unit{{Kind: unit.Name, Name: "_"}: unit.FromName(model.Name{Name: "_", Host: "_"})}
	r := router.New(router.Settings{Lookup: func(key unit.Key) (unit.Unit, bool) { u, ok := units[key]; return u, ok }})
	want := func(status int) {
		t.Helper()
		if d := r.Route("x", "/a"); d.Status != status {
			t.Errorf("%+v, want %d", d, status)
		}
	}
	want(503)
	units[key] = unit.FromHost(model.Host{Name: "_"})
	want(404)
	units[key] = unit.FromHost(model.Host{Name: "_", Routes: []model.Route{{Kind: model.Exact, Path: "/a"}}})
	want(0)
	units[key] = unit.Unit{Key: key, Version: "broken", Payload: []byte(`{"routes":[{"exact":"/a"}]}`)}
	want(503)
	delete(units, key)
	want(503)
}
