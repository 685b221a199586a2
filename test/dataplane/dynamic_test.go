package dataplane_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/gatetest"
)

// A change is one step of TestOnlyNewProfilesReload.
type change struct {
	name        string
	put, remove string
	// pushed is how many units of each kind are put or deleted in NGINX.
	pushed  map[string]int
	reloads int
	check   func(*testing.T, *gatetest.Gate)
}

// counts are the units of each kind that were pushed so far.
func counts(g *gatetest.Gate) map[string]int {
	all := map[string]int{}
	for _, kind := range []string{"globals", "certificate", "backend", "host", "name"} {
		all[kind] = g.Value(g.Metrics.Pushed.WithLabelValues(kind))
	}
	return all
}

// Whatever is added, changed or removed is served at once, without a reload,
// and costs a push of what it touches and nothing else. Only a new profile
// takes a reload.
func TestOnlyNewProfilesReload(t *testing.T) {
	t.Parallel()
	one, two := gatetest.StartEcho(t, "one"), gatetest.StartEcho(t, "two")
	g := gatetest.Start(t, gatetest.Options{Timing: gatetest.Hasty(), Manifests: served("bystander", one) +
		gatetest.Ingress("bystander", "bystander.test", "/", "bystander")})
	for _, step := range changes(t, one, two) {
		before, reloads := counts(g), g.Value(g.Metrics.Reloads)
		if step.put != "" {
			g.Apply(step.put)
		}
		if step.remove != "" {
			g.Delete(step.remove)
		}
		step.check(t, g)
		pushed := counts(g)
		for kind, n := range before {
			if pushed[kind] -= n; pushed[kind] == 0 {
				delete(pushed, kind)
			}
		}
		if !maps.Equal(pushed, step.pushed) {
			t.Errorf("%s: pushed %v, want %v", step.name, pushed, step.pushed)
		}
		if n := g.Value(g.Metrics.Reloads) - reloads; n != step.reloads {
			t.Errorf("%s: %d reloads, want %d", step.name, n, step.reloads)
		}
		if t.Failed() {
			t.Fatalf("failed at: %s", step.name)
		}
	}
	if n := strings.Count(g.Log.String(), "reloaded NGINX"); n != 1 || !strings.Contains(g.Log.String(), `reason="profile p_`) {
		t.Errorf("the log tells of %d reloads, want 1 with its reason", n)
	}
}

func changes(t *testing.T, one, two string) []change {
	first, second := gatetest.NewKeyPair(t, "first", "a.test"), gatetest.NewKeyPair(t, "second", "a.test")
	plain := gatetest.Ingress("a", "a.test", "/", "a")
	secured := func(annotations ...string) string {
		return gatetest.WithTLS(gatetest.Ingress("a", "a.test", "/", "a", annotations...), "s a.test")
	}
	return []change{
		{"an Ingress with a host", plain, "", map[string]int{"host": 1, "name": 1, "backend": 1}, 0, answers("a.test", "/", 503)},
		{"a Service", gatetest.Service("a"), "", nil, 0, answers("a.test", "/", 503)},
		{"endpoints", gatetest.Endpoints("a", one), "", map[string]int{"backend": 1}, 0, echoes("a.test", "/", "one")},
		{"other endpoints", gatetest.Endpoints("a", two), "", map[string]int{"backend": 1}, 0, echoes("a.test", "/", "two")},
		{"no endpoints", gatetest.Endpoints("a"), "", map[string]int{"backend": 1}, 0, answers("a.test", "/", 503)},
		{"endpoints again", gatetest.Endpoints("a", one), "", map[string]int{"backend": 1}, 0, echoes("a.test", "/", "one")},
		{"the same endpoints again", gatetest.Endpoints("a", one), "", nil, 0, echoes("a.test", "/", "one")},
		{
			"a path in another Ingress", served("b", two) + gatetest.Ingress("b", "a.test", "/b", "b"), "",
			map[string]int{"host": 1, "backend": 1}, 0, echoes("a.test", "/b/c", "two"),
		},
		{"another path", gatetest.Ingress("b", "a.test", "/c", "b"), "", map[string]int{"host": 1}, 0, func(t *testing.T, g *gatetest.Gate) {
			echoes("a.test", "/b/c", "one")(t, g)
			echoes("a.test", "/c", "two")(t, g)
		}},
		{"another Service", gatetest.Ingress("b", "a.test", "/c", "a"), "", map[string]int{"host": 1, "backend": 1}, 0, echoes("a.test", "/c", "one")},
		{"no such path", "", gatetest.Ingress("b", "a.test", "/c", "a"), map[string]int{"host": 1}, 0, echoes("a.test", "/c", "one")},
		{"a certificate", secured() + gatetest.TLSSecret("s", first), "", map[string]int{"name": 1, "certificate": 1}, 0, func(t *testing.T, g *gatetest.Gate) {
			wantShown(t, g, "a.test", first)
			answers("a.test", "/", 308)(t, g)
		}},
		{"another certificate", gatetest.TLSSecret("s", second), "", map[string]int{"name": 1, "certificate": 2}, 0, func(t *testing.T, g *gatetest.Gate) {
			wantShown(t, g, "a.test", second)
		}},
		{"a dynamic annotation", secured("ssl-redirect: false"), "", map[string]int{"host": 1}, 0, echoes("a.test", "/", "one")},
		{"another one", secured("ssl-redirect: false", "proxy-read-timeout: 7"), "", map[string]int{"host": 1}, 0, echoes("a.test", "/", "one")},
		{"another value", secured("ssl-redirect: true", "proxy-read-timeout: 8"), "", map[string]int{"host": 1}, 0, answers("a.test", "/", 308)},
		{"no annotation", secured(), "", map[string]int{"host": 1}, 0, answers("a.test", "/", 308)},
		{"no certificate", plain, "", map[string]int{"name": 1, "certificate": 1}, 0, echoes("a.test", "/", "one")},
		{"a key for all requests", gatetest.Config("http-redirect-code: 301"), "", map[string]int{"globals": 1}, 0, echoes("a.test", "/", "one")},
		{"a default of routes", gatetest.Config("ssl-redirect: false"), "", map[string]int{"globals": 1, "host": 2}, 0, echoes("a.test", "/", "one")},
		{"no ConfigMap", "", gatetest.Config("x: y"), map[string]int{"host": 2}, 0, echoes("a.test", "/", "one")},
		{
			"a new profile", gatetest.Ingress("a", "a.test", "/", "a", "proxy-body-size: 3m"), "",
			map[string]int{"host": 1}, 1, echoes("a.test", "/", "one"),
		},
		{
			"the same profile elsewhere", gatetest.Ingress("c", "c.test", "/", "a", "proxy-body-size: 4m"), "",
			map[string]int{"host": 1, "name": 1}, 0, echoes("c.test", "/", "one"),
		},
		{"the profile no more", plain, gatetest.Ingress("c", "c.test", "/", "a"), map[string]int{"host": 2, "name": 1}, 0, echoes("a.test", "/", "one")},
		{
			"the profile again", gatetest.Ingress("a", "a.test", "/", "a", "proxy-body-size: 3m"), "",
			map[string]int{"host": 1}, 0, echoes("a.test", "/", "one"),
		},
		{"no endpoints object", "", gatetest.Endpoints("a", one), map[string]int{"backend": 1}, 0, answers("a.test", "/", 503)},
		{"no Service", "", gatetest.Service("a"), nil, 0, answers("a.test", "/", 503)},
		{"no host", "", plain, map[string]int{"host": 1, "name": 1, "backend": 1}, 0, answers("a.test", "/", 404)},
	}
}

func answers(host, path string, want int) func(*testing.T, *gatetest.Gate) {
	return func(t *testing.T, g *gatetest.Gate) {
		t.Helper()
		g.Get(host, path).WantStatus(t, want)
	}
}

func echoes(host, path, backend string) func(*testing.T, *gatetest.Gate) {
	return func(t *testing.T, g *gatetest.Gate) {
		t.Helper()
		wantEcho(t, g.Get(host, path), backend)
	}
}
