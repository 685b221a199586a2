package dataplane_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model/resource"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// counting are the features with one more, which counts all requests by route and
// status, and shows the counts on the routes of the Ingress show.
func counting() []feature.Feature {
	return append(all.Features(), feature.Feature{
		Name: "counting",
		Resources: resource.Resources{
			InitWorker: []resource.Handler{resource.NewHandler("headgate.feature.counting", "init_worker")},
			Log:        []resource.Handler{resource.NewHandler("headgate.feature.counting", "count")},
		},
		Route: func(_ feature.Values, out *feature.RouteOut) {
			if out.Route.Origin.Ingress == "show" {
				feature.Add(out.Route, "counting", struct{}{})
				out.Route.Variant.HeaderFilter = true
			}
		},
		Lua: featuretest.Module("counting", `
local _M = {}
local pid, starts = nil, 0
local counts = {}
function _M.init_worker()
    pid, starts = ngx.worker.pid(), starts + 1
end
function _M.count(request)
    counts[#counts + 1] = (request and request.route.ingress or "none") .. "=" .. ngx.status
end
function _M.header_filter()
    ngx.header["X-Started"] = starts .. (pid == ngx.worker.pid() and " here" or " elsewhere")
    ngx.header["X-Counts"] = table.concat(counts, " ")
    counts = {}
end
return _M`),
	})
}

// A feature can count every request once, of any host, with and without a route,
// however it ends.
func TestFeaturesSeeEveryRequest(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	slow := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	}))
	refusing := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Features: counting(), Timing: headgatetest.Hasty(), Manifests: served("one", headgatetest.StartEcho(t, "one")) +
		served("slow", slow) + served("dead", "127.0.0.1:1") + headgatetest.Ingress("show", "show.test", "/", "one") +
		headgatetest.Ingress("plain", "a.test", "/", "one") + headgatetest.Ingress("limited", "a.test", "/limited", "one", "proxy-body-size: 1k") +
		headgatetest.Ingress("dead", "a.test", "/dead", "dead") + headgatetest.Ingress("signed", "a.test", "/signed", "one", "auth-url: http://"+refusing) +
		headgatetest.Ingress("moved", "a.test", "/moved", "one", "permanent-redirect: http://else.test") + headgatetest.Ingress("slow", "a.test", "/slow", "slow")})
	counts := func() []string {
		t.Helper()
		return strings.Fields(g.Get("show.test", "/").WantStatus(t, 200).Header.Get("X-Counts"))
	}
	if got := counts(); len(got) != 0 {
		t.Errorf("before the first request: %q", got)
	}
	g.Get("a.test", "/").WantStatus(t, 200)
	g.Get("unknown.test", "/").WantStatus(t, 404)
	g.Get("unknown.test", "/healthz").WantStatus(t, 200)
	g.Get("a.test", "/dead").WantStatus(t, 502)
	g.Get("a.test", "/signed").WantStatus(t, 401)
	g.Get("a.test", "/moved").WantStatus(t, 301)
	g.Do(headgatetest.Request{Scheme: "https", Host: "a.test", HTTP2: true}).WantStatus(t, 200)
	g.Do(headgatetest.Request{Method: "POST", Host: "a.test", Path: "/limited", Body: strings.NewReader(strings.Repeat("x", 2000))}).WantStatus(t, 413)
	g.Raw("GET / HTTP/1.1\r\nHost: a b\r\n\r\n")
	// countsUntil are those from now on, but for requests that ask for them.
	countsUntil := func(last string) (seen []string) {
		t.Helper()
		headgatetest.Eventually(t, "counted: "+last, func() bool {
			seen = append(seen, counts()...)
			return slices.Contains(seen, last)
		})
		seen = append(seen, counts()...)
		return slices.DeleteFunc(seen, func(s string) bool { return s == "show=200" })
	}
	// A refused request may still be read when its client has the response.
	want := []string{"dead=502", "limited=413", "moved=301", "none=200", "none=400", "none=404", "plain=200", "plain=200", "signed=401"}
	if got := slices.Sorted(slices.Values(countsUntil("limited=413"))); !slices.Equal(got, want) {
		t.Errorf("counted %q, want %q", got, want)
	}
	l := &line{port: g.HTTP}
	if err := l.send("GET /slow HTTP/1.1\r\nHost: a.test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-arrived:
	case <-time.After(headgatetest.Timeout):
		t.Fatal("the backend is not asked")
	}
	l.close()
	if got := countsUntil("slow=499"); !slices.Equal(got, []string{"slow=499"}) {
		t.Errorf("counted %q", got)
	}
}

// What a feature does when a worker starts is done once in each, also after a reload.
func TestFeaturesStartInEachWorker(t *testing.T) {
	t.Parallel()
	g := headgatetest.Start(t, headgatetest.Options{Features: counting(), Timing: headgatetest.Hasty(), Manifests: served("one", headgatetest.StartEcho(t, "one")) +
		headgatetest.Ingress("show", "show.test", "/", "one")})
	for range 2 {
		for range 6 { // each worker is met
			if got := g.Get("show.test", "/").WantStatus(t, 200).Header.Get("X-Started"); got != "1 here" {
				t.Fatalf("started %q, want once in each worker", got)
			}
		}
		reload(t, g)
	}
}
