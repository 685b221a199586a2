package dataplane_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A change is one step of TestOnlyNewProfilesReload.
type change struct {
	name        string
	put, remove string
	// pushed is how many units of each kind are put or deleted in NGINX.
	pushed  map[string]int
	reloads int
	check   func(*testing.T, *headgatetest.Instance)
}

// counts are the units of each kind that were pushed so far.
func counts(g *headgatetest.Instance) map[string]int {
	all := map[string]int{}
	for _, kind := range []string{"globals", "certificate", "backend", "host", "name"} {
		all[kind] = g.Value(g.Metrics.Pushed.WithLabelValues(kind))
	}
	return all
}

// Each addition, change and removal is served at once, without a reload, and
// costs a push of what it touches and nothing else. Only a new profile takes a
// reload.
func TestOnlyNewProfilesReload(t *testing.T) {
	t.Parallel()
	one, two := headgatetest.StartEcho(t, "one"), headgatetest.StartEcho(t, "two")
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: served("bystander", one) +
		headgatetest.Ingress("bystander", "bystander.test", "/", "bystander")})
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
		t.Errorf("the log has %d reloads, want 1 with its reason", n)
	}
}

func changes(t *testing.T, one, two string) []change {
	first, second := headgatetest.NewKeyPair(t, "first", "a.test"), headgatetest.NewKeyPair(t, "second", "a.test")
	plain := headgatetest.Ingress("a", "a.test", "/", "a")
	secured := func(annotations ...string) string {
		return headgatetest.WithTLS(headgatetest.Ingress("a", "a.test", "/", "a", annotations...), "s a.test")
	}
	return []change{
		{"an Ingress with a host", plain, "", map[string]int{"host": 1, "name": 1, "backend": 1}, 0, answers("a.test", "/", 503)},
		{"a Service", headgatetest.Service("a"), "", nil, 0, answers("a.test", "/", 503)},
		{"endpoints", headgatetest.Endpoints("a", one), "", map[string]int{"backend": 1}, 0, echoes("a.test", "/", "one")},
		{"other endpoints", headgatetest.Endpoints("a", two), "", map[string]int{"backend": 1}, 0, echoes("a.test", "/", "two")},
		{"no endpoints", headgatetest.Endpoints("a"), "", map[string]int{"backend": 1}, 0, answers("a.test", "/", 503)},
		{"endpoints again", headgatetest.Endpoints("a", one), "", map[string]int{"backend": 1}, 0, echoes("a.test", "/", "one")},
		{"the same endpoints again", headgatetest.Endpoints("a", one), "", nil, 0, echoes("a.test", "/", "one")},
		{
			"a path in another Ingress", served("b", two) + headgatetest.Ingress("b", "a.test", "/b", "b"), "",
			map[string]int{"host": 1, "backend": 1}, 0, echoes("a.test", "/b/c", "two"),
		},
		{"another path", headgatetest.Ingress("b", "a.test", "/c", "b"), "", map[string]int{"host": 1}, 0, func(t *testing.T, g *headgatetest.Instance) {
			echoes("a.test", "/b/c", "one")(t, g)
			echoes("a.test", "/c", "two")(t, g)
		}},
		{"another Service", headgatetest.Ingress("b", "a.test", "/c", "a"), "", map[string]int{"host": 1, "backend": 1}, 0, echoes("a.test", "/c", "one")},
		{"no such path", "", headgatetest.Ingress("b", "a.test", "/c", "a"), map[string]int{"host": 1}, 0, echoes("a.test", "/c", "one")},
		{"a certificate", secured() + headgatetest.TLSSecret("s", first), "", map[string]int{"name": 1, "certificate": 1}, 0, func(t *testing.T, g *headgatetest.Instance) {
			wantShown(t, g, "a.test", first)
			answers("a.test", "/", 308)(t, g)
		}},
		{"another certificate", headgatetest.TLSSecret("s", second), "", map[string]int{"name": 1, "certificate": 2}, 0, func(t *testing.T, g *headgatetest.Instance) {
			wantShown(t, g, "a.test", second)
		}},
		{"a dynamic annotation", secured("ssl-redirect: false"), "", map[string]int{"host": 1}, 0, echoes("a.test", "/", "one")},
		{"another one", secured("ssl-redirect: false", "proxy-read-timeout: 7"), "", map[string]int{"host": 1}, 0, echoes("a.test", "/", "one")},
		{"another value", secured("ssl-redirect: true", "proxy-read-timeout: 8"), "", map[string]int{"host": 1}, 0, answers("a.test", "/", 308)},
		{"no annotation", secured(), "", map[string]int{"host": 1}, 0, answers("a.test", "/", 308)},
		{"no certificate", plain, "", map[string]int{"name": 1, "certificate": 1}, 0, echoes("a.test", "/", "one")},
		{"a key for all requests", headgatetest.Config("http-redirect-code: 301"), "", map[string]int{"globals": 1}, 0, echoes("a.test", "/", "one")},
		{"a default of routes", headgatetest.Config("ssl-redirect: false"), "", map[string]int{"globals": 1, "host": 2}, 0, echoes("a.test", "/", "one")},
		{"no ConfigMap", "", headgatetest.Config("x: y"), map[string]int{"host": 2}, 0, echoes("a.test", "/", "one")},
		{
			"a new profile", headgatetest.Ingress("a", "a.test", "/", "a", "proxy-body-size: 300k"), "",
			map[string]int{"host": 2}, 1, echoes("a.test", "/", "one"),
		},
		{
			"the same profile elsewhere", headgatetest.Ingress("c", "c.test", "/", "a", "proxy-body-size: 400k"), "",
			map[string]int{"host": 1, "name": 1}, 0, echoes("c.test", "/", "one"),
		},
		{"the profile no more", plain, headgatetest.Ingress("c", "c.test", "/", "a"), map[string]int{"host": 2, "name": 1}, 0, echoes("a.test", "/", "one")},
		{
			"the profile again", headgatetest.Ingress("a", "a.test", "/", "a", "proxy-body-size: 300k"), "",
			map[string]int{"host": 1}, 0, echoes("a.test", "/", "one"),
		},
		{"no endpoints object", "", headgatetest.Endpoints("a", one), map[string]int{"backend": 1}, 0, answers("a.test", "/", 503)},
		{"no Service", "", headgatetest.Service("a"), nil, 0, answers("a.test", "/", 503)},
		{"no host", "", plain, map[string]int{"host": 1, "name": 1, "backend": 1}, 0, answers("a.test", "/", 404)},
	}
}

func answers(host, path string, want int) func(*testing.T, *headgatetest.Instance) {
	return func(t *testing.T, g *headgatetest.Instance) {
		t.Helper()
		g.Get(host, path).WantStatus(t, want)
	}
}

func echoes(host, path, backend string) func(*testing.T, *headgatetest.Instance) {
	return func(t *testing.T, g *headgatetest.Instance) {
		t.Helper()
		wantEcho(t, g.Get(host, path), backend)
	}
}
