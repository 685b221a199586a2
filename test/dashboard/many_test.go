package dashboard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/headgate/headgate/internal/adminapi"
	"github.com/headgate/headgate/internal/adminapi/dashboard"
	"github.com/headgate/headgate/internal/adminapi/overview"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/history"
	"github.com/headgate/headgate/internal/unit"
)

const many = 10000

// TestManyHosts: with 10,000 hosts the page has parts, a search finds the one, and no answer is
// large, not even with an error of NGINX of 1 MB. In a cluster, the advice is about pods.
func TestManyHosts(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(largeCluster(t))
	defer server.Close()
	for _, path := range []string{"hosts", "hosts?limit=200", "backends?limit=200", "certificates", "findings?limit=200", "rates?limit=200", "changes", "status"} {
		response, err := http.Get(server.URL + "/v1/" + path)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || n > 300<<10 {
			t.Errorf("%s: %s, %d bytes, %v", path, response.Status, n, err)
		}
	}
	b := tab(t, startChromium(t), server.URL)
	b.open("/#/hosts")
	b.has("1–50 of 10,000 hosts", "h00000.test")
	if rows := evaluate[int](b, "document.querySelectorAll('tbody tr').length"); rows != 50 {
		t.Errorf("%d rows", rows)
	}
	b.do(chromedp.Click(chromedp.Search("//a[text()='Next']")))
	b.has("51–100 of 10,000 hosts", "h00050.test")
	b.do(chromedp.Click(chromedp.Search("//a[text()='Last']")))
	b.has("9,951–10,000 of 10,000 hosts", "h09999.test")
	b.do(chromedp.SendKeys(chromedp.CSS("#filter"), "h04711"+kb.Enter))
	b.has("1–1 of 1 hosts", "ingress/team-11/h04711")
	b.do(chromedp.Click(chromedp.CSS("a[href='#/host/h04711.test']")))
	b.has("1–1 of 1 routes")
	b.do(chromedp.Click(chromedp.CSS("a[href='#/backend/team-11%2Fh04711%2F80']")))
	b.has("10.0.18.103:8080", "gets requests")
	b.open("/#/backend/shop%2Fempty%2F80")
	b.has("kubectl describe service -n shop empty", "kubectl get endpointslices -n shop -l kubernetes.io/service-name=empty")
	b.open("/#/changes")
	b.has("reload failed", "[emerg] unknown directive")
	b.open("/#/findings")
	b.has("1–50 of 10,000 findings")
	b.open("/#/hosts?offset=20000")
	b.has("Nothing here: there are 10,000 hosts.")
}

// largeCluster serves the page with many hosts.
func largeCluster(t *testing.T) http.Handler {
	table := overview.New()
	var findings []finding.Finding
	for n := range many {
		name := fmt.Sprintf("h%05d", n)
		origin := model.Origin{Namespace: fmt.Sprintf("team-%d", n%100), Ingress: name}
		key := model.BackendKey(origin.Namespace, name, "80")
		address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), 8080)
		table.Set(unit.Of(model.Backend{Key: key, Endpoints: []netip.AddrPort{address}}))
		table.Set(unit.Of(model.Host{Name: name + ".test", Namespace: origin.Namespace, Routes: []model.Route{{Kind: model.Prefix, Path: "/", Backend: key, Origin: origin}}}))
		table.Set(unit.Of(model.Name{Name: name + ".test", Host: name + ".test", Namespace: origin.Namespace}))
		findings = append(findings, finding.Finding{Object: "ingress/" + origin.Namespace + "/" + name, Field: "spec", Code: finding.InvalidValue, Message: "wrong", Effect: "none"})
	}
	codes := func() map[finding.Code]int { return map[finding.Code]int{finding.InvalidValue: len(findings)} }
	table.Set(unit.Of(model.Backend{Key: "shop/empty/80"}))
	log := history.New()
	log.Reload("a profile", 2, 0, errors.New(strings.Repeat("[emerg] unknown directive\n", 1<<20/26)))
	answers := adminapi.Answers{Findings: func() []finding.Finding { return findings }, Codes: codes, Overview: &adminapi.Overview{
		Table: table, History: log,
		Rates: overview.NewRates(func() map[string]overview.Counts { return map[string]overview.Counts{"h00001.test": {2: 5}} }),
		Status: func(context.Context) adminapi.Status {
			return adminapi.Status{Release: "test", Source: "cluster", Now: time.Now(), Started: time.Now(), Serving: true, Synced: true, Workers: []adminapi.Worker{}}
		},
		Ejections: func(context.Context) []overview.Ejection { return nil },
	}}
	handler, err := dashboard.Handler("127.0.0.1", adminapi.Handler(answers))
	if err != nil {
		t.Fatal(err)
	}
	return handler
}
