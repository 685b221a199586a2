package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/headgate/headgate/internal/adminapi"
	"github.com/headgate/headgate/internal/adminapi/dashboard"
	"github.com/headgate/headgate/internal/adminapi/overview"
	"github.com/headgate/headgate/internal/explain"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/observe/history"
	"github.com/headgate/headgate/internal/unit"
)

// A fleet is the page of a control with edges.
type fleet struct {
	mu    sync.Mutex
	edges []adminapi.Edge
}

func (f *fleet) set(edges ...adminapi.Edge) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.edges = edges
}

func (f *fleet) list() []adminapi.Edge {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.edges
}

// start serves the page.
func (f *fleet) start(t *testing.T) (page string) {
	table, began := overview.New(), time.Now()
	table.Set(unit.Of(model.Backend{Key: "shop/web/80", Endpoints: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:80")}}))
	answers := adminapi.Answers{
		Findings: func() []finding.Finding { return nil }, Codes: func() map[finding.Code]int { return map[finding.Code]int{} }, Edges: f.list, Explain: explained,
		Overview: &adminapi.Overview{
			Table: table, History: history.New(),
			Status: func(context.Context) adminapi.Status {
				return adminapi.Status{Release: "test", NGINX: "1.28.0", Source: "cluster", Now: time.Now(), Started: began, Serving: true, Synced: true, Workers: []adminapi.Worker{}}
			},
			Ejections: func(context.Context) []overview.Ejection { return nil },
		},
	}
	handler, err := dashboard.Handler("127.0.0.1", adminapi.Handler(answers))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// explained says what three edges have.
func explained(_ context.Context, q explain.Query) (report.Explanation, error) {
	worker := report.Worker{PID: 11, Generation: 3, Ejected: []report.Ejected{{Backend: "shop/web/80", Endpoint: "10.0.0.1:80", Reason: "connect", Avoided: true}}}
	has := func(current bool) report.DataPlane {
		return report.DataPlane{Generation: 3, Loaded: true, Units: []report.Stored{{Kind: "host", Name: "shop.test", Version: "v1", Current: current}}, Workers: []report.Worker{worker}}
	}
	return report.Explanation{
		Request:  report.Request{URL: q.URL, Method: "GET", Scheme: "http", Host: "shop.test", Path: "/"},
		Answers:  []report.Answer{{Scheme: "http", Backend: "shop/web/80", Endpoints: 1, Why: "it is the only path"}},
		Findings: []finding.Finding{},
		Edges: []report.Edge{
			{Name: "edge-a", DataPlane: has(true)}, {Name: hostile, DataPlane: has(false)}, {Name: "edge-c", DataPlane: report.DataPlane{Problem: "the edge does not answer " + hostile}},
		},
	}, nil
}

// working is an edge that has no problem.
func working(name, group string) adminapi.Edge {
	return adminapi.Edge{
		Name: name, Group: group, Since: time.Now().Add(-3 * time.Hour), Reported: true, Release: "v1.2.3", NGINX: "1.28.1", Started: time.Now(), Serving: true, Synced: true,
	}
}

// troubled are edges in all other states, with texts that are taken for HTML if anything is.
func troubled() []adminapi.Edge {
	behind, silent, broken, found := working("edge-behind", ""), working("edge-silent", ""), working("edge-broken", hostile), working("edge-found", "")
	behind.Synced = false
	silent.Silent = true
	broken.Serving, broken.Problem, broken.NGINX, broken.Release = false, "no NGINX: "+hostile, hostile, hostile
	for i := range 8 {
		found.Findings = append(found.Findings, finding.Finding{Object: fmt.Sprint("configmap/a/b-", i), Code: finding.MissingCapability, Message: "needs a module " + hostile, Effect: "none"})
	}
	found.MoreFindings = 3
	return []adminapi.Edge{behind, silent, broken, found, {Name: hostile, Since: time.Now()}}
}

// TestEdges: a control shows its edges, those that need a look first, and no NGINX of its own.
func TestEdges(t *testing.T) {
	t.Parallel()
	f := &fleet{}
	b := tab(t, startChromium(t), f.start(t))
	b.open("/#/")
	b.has("no edge is connected", "nothing serves", "publishing")
	f.set(working("edge-a", ""), working("edge-b", ""))
	b.has("2 edges", "all serve", "edge-a", "edge-b", "serving, synced", "1.28.1", "v1.2.3", "3 h ago", "none")
	b.lacks("worker", "no reload", "Group", "NGINX 1.28.0", "nothing serves")
	f.set(append([]adminapi.Edge{working("edge-a", ""), working("edge-b", "")}, troubled()...)...)
	b.has("7 edges, 2 with a problem", "all 7 edges", "silent", "not serving: no NGINX: "+hostile, "11 findings", "configmap/a/b-4: needs a module", "and 6 more")
	b.lacks("configmap/a/b-5")
	first := evaluate[[]string](b, "[...document.querySelectorAll('tbody tr th')].map((head) => head.innerText)")
	if got, want := strings.Join(first, " "), "edge-silent edge-broken edge-found edge-behind "+hostile; got != want {
		t.Errorf("the edges are %s, want %s", got, want)
	}
	b.open("/#/edges")
	b.has("1–7 of 7 edges", "has not reported yet", "applying changes", hostile, "Group")
	b.do(chromedp.Click(chromedp.CSS("#problems")))
	b.has("1–3 of 3 edges")
	b.open("/#/edges")
	b.do(chromedp.SendKeys(chromedp.CSS("#filter"), "edge-b"+kb.Enter))
	b.has("1–3 of 3 edges", "edge-behind", "edge-broken")
	b.open("/#/explain?url=http%3A%2F%2Fshop.test%2F")
	b.has("of 3 edges", "edge-a: 1 worker, generation 3", "NGINX has the newest version of everything", "NGINX does not have the newest version of host shop.test", "the edge does not answer "+hostile)
	for _, link := range []string{"/#/", "/#/edges", "/#/explain?url=http%3A%2F%2Fshop.test%2F"} {
		b.open(link)
		if n := evaluate[int](b, "document.querySelectorAll('main img, main script, main [onerror], main iframe').length"); n > 0 {
			t.Errorf("%s has %d elements of an edge", link, n)
		}
	}
	checkLooks(b, "/#/", "/#/edges", "/#/explain?url=http%3A%2F%2Fshop.test%2F")
}

// TestManyEdges: with many edges, and long texts of each, no answer of the page is large.
func TestManyEdges(t *testing.T) {
	t.Parallel()
	var edges []adminapi.Edge
	for n := range 500 {
		e := working(fmt.Sprintf("edge-%03d", n), "")
		for range 100 {
			e.Findings = append(e.Findings, finding.Finding{Object: strings.Repeat("o", 500), Message: strings.Repeat("m", 500)})
		}
		edges = append(edges, e)
	}
	f := &fleet{edges: edges}
	page := f.start(t)
	for path, most := range map[string]int{"status": 2 << 10, "edges?limit=5": 64 << 10, "edges?limit=50": 512 << 10} {
		response, err := http.Get(page + "/v1/" + path)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || n > int64(most) {
			t.Errorf("%s: %s, %d bytes, %v", path, response.Status, n, err)
		}
	}
}
