package snippet_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// zoned is an instance with Ingresses of the hosts requests.test and connections.test, whose snippets name the
// zone of the administrator.
type zoned struct {
	*headgatetest.Instance
	t *testing.T
	// settings counts those that only a reload gives effect.
	settings int
}

func startZoned(t *testing.T) *zoned {
	t.Helper()
	return &zoned{t: t, Instance: headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("web") +
		headgatetest.Endpoints("web", headgatetest.StartEcho(t, "web")) + config("") + headgatetest.Ingress("plain", "plain.test", "/", "web") +
		of("requests", "configuration-snippet", "limit_req zone=mine; limit_req_status 429;") +
		of("connections", "server-snippet", "limit_conn mine 1;")})}
}

func config(http string, more ...string) string {
	keys := append([]string{"allow-snippet-annotations: true", "annotations-risk-level: Critical"}, more...)
	if http != "" {
		keys = append(keys, "http-snippet: "+http)
	}
	return headgatetest.Config(keys...)
}

// goesOn checks that an Ingress with a new static setting is served, which takes a reload.
func (g *zoned) goesOn() {
	g.t.Helper()
	g.settings++
	reloads := g.Value(g.Metrics.Reloads)
	// NGINX has forgotten a size when its turn comes again.
	size := fmt.Sprintf("client-body-buffer-size: %dk", 32<<(g.settings%4))
	g.Apply(headgatetest.Ingress("plain", "plain.test", "/", "web", size))
	g.Get("plain.test", "/").WantStatus(g.t, 200)
	if g.Value(g.Metrics.Reloads) == reloads {
		g.t.Errorf("the setting %q of another Ingress took no reload", size)
	}
}

// serves checks how requests to the hosts are answered, and that NGINX takes other changes.
func (g *zoned) serves(requests, connections int) {
	g.t.Helper()
	for range 2 {
		g.Get("requests.test", "/").WantStatus(g.t, requests)
		g.Get("connections.test", "/").WantStatus(g.t, connections)
		g.goesOn()
	}
}

func (g *zoned) reports(object, text string) {
	g.t.Helper()
	for line := range strings.Lines(g.Log.String()) {
		if strings.Contains(line, object) && strings.Contains(line, strings.Trim(fmt.Sprintf("%q", text), `"`)) {
			return
		}
	}
	g.t.Errorf("%s has no finding with %q", object, text)
}

const (
	requestZone    = "limit_req_zone $binary_remote_addr zone=mine:1m rate=1r/m;"
	connectionZone = "limit_conn_zone $binary_remote_addr zone=mine:1m;"
	noText         = `with the zone "mine", and NGINX does not have the text of http-snippet that defines it`
)

// TestZones: paths whose snippets name a zone are closed while nginx.conf does not have it, they open when it does,
// and nothing else waits for them.
func TestZones(t *testing.T) {
	t.Parallel()
	g := startZoned(t)
	g.serves(503, 503)
	g.reports("ingress/default/requests", `no limit_req_zone with the name "mine"`)

	g.Apply(config(requestZone + " nonsense;"))
	g.serves(503, 503)
	g.reports("ingress/default/requests", "limit_req "+noText)
	g.reports("configmap/", `unknown directive "nonsense"`)

	g.ApplyReloading(config(requestZone))
	g.Get("requests.test", "/").WantStatus(t, 200)
	g.serves(429, 503)
	g.reports("ingress/default/connections", `no limit_conn_zone with the name "mine"`)

	// The zone of the same name is one of another kind.
	g.Apply(config(connectionZone))
	g.serves(503, 200)

	// NGINX keeps the text before, which has the other kind.
	g.Apply(config(requestZone + " nonsense;"))
	g.serves(503, 503)

	g.Apply(config(requestZone))
	g.Get("requests.test", "/").WantStatus(t, 200)
	g.serves(429, 503)

	// Without the zone, while the hosts that the data plane has name it.
	g.Apply(config("", "hsts-max-age: 5"))
	g.serves(503, 503)
	if n := g.Value(g.Metrics.ReloadFailures); n != 0 {
		t.Errorf("%d reloads failed", n)
	}
}

// TestZoneOfAnotherKey: a zone of a new key needs a new name, or the zone must be gone first. NGINX would find that only at a
// reload. Until then the text before stays, with its zone.
func TestZoneOfAnotherKey(t *testing.T) {
	t.Parallel()
	g := startZoned(t)
	g.ApplyReloading(config(requestZone))
	g.Get("requests.test", "/").WantStatus(t, 200)
	g.serves(429, 503)
	other := strings.Replace(requestZone, "$binary_remote_addr", "$uri$is_args", 1)
	g.Apply(config(other))
	g.reports("configmap/", `line 1: "limit_req_zone": the key of a zone can't change from $binary_remote_addr to $uri$is_args`)
	g.serves(429, 503)
	g.Apply(config(""))
	g.serves(503, 503)
	g.ApplyReloading(config(other))
	g.Get("requests.test", "/").WantStatus(t, 200)
	g.serves(429, 503)
	g.Get("requests.test", "/other").WantStatus(t, 200)
	if n := g.Value(g.Metrics.ReloadFailures); n != 0 {
		t.Errorf("%d reloads failed", n)
	}
}

// TestGivenByTheAdministrator: what location-snippet has stands in every location. NGINX takes most directives,
// and a limit by a zone, once: those of tenants are left out, and no reload fails.
func TestGivenByTheAdministrator(t *testing.T) {
	t.Parallel()
	g := &zoned{t: t, Instance: headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("web") +
		headgatetest.Endpoints("web", headgatetest.StartEcho(t, "web")) + headgatetest.Ingress("plain", "plain.test", "/", "web") +
		config(requestZone, "location-snippet: gzip on; gzip_types *; proxy_socket_keepalive on; limit_req zone=mine burst=100 nodelay;") +
		of("requests", "configuration-snippet", "gzip off; gzip_types text/css; proxy_socket_keepalive off; limit_req zone=mine; gzip_vary on;") +
		of("twice", "configuration-snippet", "limit_req zone=mine; limit_req zone=mine burst=5;")})}
	for range 2 {
		g.goesOn()
		g.Get("requests.test", "/").WantStatus(t, 200)
		g.Get("twice.test", "/").WantStatus(t, 503)
	}
	g.reports("ingress/default/twice", `the zone "mine" is limited by twice`)

	g.ApplyReloading(config(requestZone))
	// The zone has counted the requests before.
	g.Get("requests.test", "/").WantStatus(t, 503)
	g.goesOn()
	if n := g.Value(g.Metrics.ReloadFailures); n != 0 {
		t.Errorf("%d reloads failed", n)
	}
}
