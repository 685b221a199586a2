package adminapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/adminapi/overview"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/history"
	"github.com/headgate/headgate/internal/unit"
)

var (
	old    = finding.Finding{Object: "ingress/a/old", Code: finding.Expires, Message: strings.Repeat("x", 1<<20)}
	denied = finding.Finding{Object: "ingress/shop/web", Field: "x", Code: finding.InvalidValue, Message: "bad", Effect: "503", Denies: true}
)

// shown serves one host with one backend.
func shown(t *testing.T, rates *overview.Rates) (socket string) {
	table, changes := overview.New(), history.New()
	address := netip.MustParseAddrPort("10.0.0.1:80")
	table.Set(unit.Of(model.Backend{Key: "shop/web/80", Endpoints: []netip.AddrPort{address}}))
	table.Set(unit.Of(model.Host{Name: "a.test", Namespace: "shop", Routes: []model.Route{
		{Kind: model.Prefix, Path: "/", Backend: "shop/web/80", Origin: model.Origin{Namespace: "shop", Ingress: "web"}},
	}}))
	changes.Change(1, time.Now(), "ingress/shop/web", false)
	changes.Apply(1)
	changes.Reload("a profile", 2, time.Second, nil)
	socket = filepath.Join(t.TempDir(), "s")
	findings := []finding.Finding{old, one, two, denied}
	stop, err := Start(socket, Answers{Findings: func() []finding.Finding { return findings }, Codes: func() map[finding.Code]int { return codes(findings) }, Overview: &Overview{
		Table: table, History: changes, Rates: rates,
		Status: func(context.Context) Status {
			return Status{Release: "v1", Serving: true, Problem: strings.Repeat("p", 1<<20), Workers: []Worker{{7, 2}}}
		},
		Ejections: func(context.Context) []overview.Ejection {
			return []overview.Ejection{{Backend: "shop/web/80", Endpoint: "10.0.0.1:80", Why: "no connection", Avoided: true}}
		},
	}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return socket
}

// compact is JSON in one line.
func compact(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimSpace(line))
	}
	if !json.Valid([]byte(text)) {
		t.Errorf("not JSON: %s", text)
	}
	return b.String()
}

// TestOverview: the forms of all resources.
func TestOverview(t *testing.T) {
	socket := shown(t, overview.NewRates(func() map[string]overview.Counts { return map[string]overview.Counts{"a.test": {2: 5}} }))
	const few = `{"names": ["a.test"],"total": 1}`
	const backend = `"key": "shop/web/80","namespace": "shop","service": "web","port": "80","endpoints": 1,"unhealthy": 0,"ejected": 1,"health": "down","checked": false,"hosts": ` + few
	for path, want := range map[string]string{
		"hosts":                         `{"items": [{"name": "a.test","namespace": "shop","aliases": {"names": [],"total": 0},"ingresses": {"names": ["ingress/shop/web"],"total": 1},"routes": 1,"denied": 0,"health": "ok","tls": false}],"total": 1}`,
		"hosts?q=nothing":               `{"items": [],"total": 0}`,
		"hosts?problems=true":           `{"items": [],"total": 0}`,
		"routes?host=a.test":            `"items": [{"kind": "prefix","path": "/","backend": "shop/web/80","ingress": "ingress/shop/web","health": "ok"}],"total": 1}`,
		"backends":                      `{"items": [{` + backend + `}],"total": 1}`,
		"endpoints?backend=shop/web/80": `{"backend": {` + backend + `},"items": [{"address": "10.0.0.1:80","state": "ejected","used": true,"why": "no connection"}],"total": 1}`,
		"certificates":                  `{"items": [],"total": 0}`,
		"changes?q=shop":                `"objects": [{"object": "ingress/shop/web"}],"total": 1}],"total": 1}`,
		"changes?limit=1":               `"took": 1,"reason": "a profile","generation": 2}],"total": 2}`,
		"rates":                         `{"enabled": true,"over": 0,"all": {"host": "","all": 0,"classes": [0,0,0,0,0,0],"requests": 5},"items": [{"host": "a.test","all": 0,"classes": [0,0,0,0,0,0],"requests": 5}],"total": 1}`,
		"findings?limit=1&offset=2":     `"code": "InvalidValue","message": "bad","effect": "none","severity": "error"}],"total": 4}`,
		"findings?limit=1":              `{"codes": {"Conflict": 1,"Expires": 1,"InvalidValue": 2},"findings": [{"object": "ingress/shop/web",`,
		"findings?limit=4&offset=3":     `[{"object": "ingress/a/old","field": "","code": "Expires","message": "` + strings.Repeat("x", 1000) + `…","effect": "","severity": "notice"}],"total": 4}`,
		"findings?limit=9&host=a.test":  `"codes": {"InvalidValue": 1},"findings": [{"object": "ingress/shop/web","field": "x","code": "InvalidValue","message": "bad","effect": "503","severity": "denial"}],"total": 1}`,
		"findings?host=a.test":          `{"findings": [{"object": "ingress/shop/web","field": "x","code": "InvalidValue","message": "bad","effect": "503"}]}`,
		"findings?q=LOST":               `"message": "<lost>","effect": "not served"}]}`,
		"status":                        `"problem": "` + strings.Repeat("p", 1000) + `…","source": "","generation": 0,"workers": [{"pid": 7,"generation": 2}]`,
	} {
		response, text := ask(t, socket, "GET", "/v1/"+path)
		if got := compact(t, text); response.StatusCode != 200 || !strings.Contains(got, want) {
			t.Errorf("%s: %s %s\nwant %s", path, response.Status, got, want)
		}
	}
	if _, text := ask(t, socket, "GET", "/v1/status"); !strings.Contains(compact(t, text), `"metrics": true,"hosts": 1,"backends": 1,"certificates": 0,"findings": 4,"codes": {"Conflict": 1,"Expires": 1,"InvalidValue": 2},"ejected": 1}`) {
		t.Error(text)
	}
}

func TestOverviewRefusals(t *testing.T) {
	socket := shown(t, nil)
	for path, status := range map[string]int{
		"hosts?limit=0": 400, "hosts?limit=201": 400, "hosts?limit=x": 400, "hosts?offset=-1": 400, "hosts?problems=yes": 400, "hosts?query=a": 400, "hosts?host=a": 400,
		"status?q=a": 400, "rates?problems=true": 400, "changes?problems=true": 400, "routes": 404, "routes?host=b.test": 404, "endpoints?backend=x": 404,
		"findings?limit=1000": 400, "findings?host=b.test": 404, "findings?host=": 404, "hosts/a.test": 404, "hosts?limit=200&offset=1000000": 200, "rates": 200,
	} {
		if response, text := ask(t, socket, "GET", "/v1/"+path); response.StatusCode != status {
			t.Errorf("%s: %s %s", path, response.Status, text)
		}
	}
	if response, _ := ask(t, socket, "POST", "/v1/hosts"); response.StatusCode != 405 {
		t.Errorf("POST: %s", response.Status)
	}
	if _, text := ask(t, socket, "GET", "/v1/rates"); compact(t, text) != `{"enabled": false,"items": [],"total": 0}` {
		t.Error(text)
	}
	// Without the page nothing is kept.
	bare := filepath.Join(t.TempDir(), "s")
	serve(t, bare)
	for _, path := range []string{"status", "hosts", "routes", "backends", "endpoints", "certificates", "changes", "rates", "findings?host=a.test"} {
		if response, text := ask(t, bare, "GET", "/v1/"+path); response.StatusCode != 404 || !strings.Contains(text, "--dashboard-address") {
			t.Errorf("%s: %s %s", path, response.Status, text)
		}
	}
}
