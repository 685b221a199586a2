package healthcheck_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

const host = "shop.test"

// A shop is a backend of several endpoints, "shop" on port 80.
type shop struct {
	g         *headgatetest.Instance
	addresses []string
	// statuses are what the endpoints answer to GET /healthz.
	statuses []atomic.Int64
	// checked are the Host headers of checks.
	checked sync.Map
}

// often are the annotations by which one check decides, on any machine.
var often = []string{
	"health-check: http", "health-check-path: /healthz", "health-check-interval: 1s", "health-check-timeout: 30s",
	"health-check-unhealthy-threshold: 1", "health-check-healthy-threshold: 1",
}

func newShop(t *testing.T, size int, annotations ...string) *shop {
	s := &shop{statuses: make([]atomic.Int64, size)}
	for i := range size {
		s.statuses[i].Store(http.StatusOK)
		s.addresses = append(s.addresses, headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Endpoint", s.addresses[i])
			if r.URL.Path == "/healthz" {
				s.checked.Store(r.Host, true)
				w.WriteHeader(int(s.statuses[i].Load()))
			}
		})))
	}
	s.g = headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("shop") + headgatetest.Endpoints("shop", s.addresses...) +
		headgatetest.Ingress("web", host, "/", "shop", annotations...)})
	return s
}

// wantUnhealthy waits until the finding names as many endpoints, and that is served.
func (s *shop) wantUnhealthy(t *testing.T, of string) {
	t.Helper()
	current := s.g.Metrics.Findings.WithLabelValues(string(finding.Unhealthy))
	headgatetest.Eventually(t, of+" are unhealthy", func() bool {
		if of == "none" {
			return s.g.Value(current) == 0
		}
		lines := strings.Split(s.g.Log.String(), "\n")
		last := -1
		for i, line := range lines {
			if strings.Contains(line, "fail the health check") {
				last = i
			}
		}
		return s.g.Value(current) == 1 && last >= 0 && strings.Contains(lines[last], of+" endpoints fail the health check")
	})
	s.g.WaitSynced()
}

// wantAnswers sends requests until each of the endpoints has answered, and others in
// addition: no other endpoint answers.
func (s *shop) wantAnswers(t *testing.T, want ...string) {
	t.Helper()
	want = slices.Sorted(slices.Values(want))
	answered := map[string]bool{}
	ask := func() {
		answered[s.g.Get(host, "/").WantStatus(t, http.StatusOK).Header.Get("X-Endpoint")] = true
	}
	headgatetest.Eventually(t, "all of them have answered", func() bool {
		ask()
		return !slices.ContainsFunc(want, func(at string) bool { return !answered[at] })
	})
	for range 10 * len(s.addresses) {
		ask()
	}
	if got := slices.Sorted(maps.Keys(answered)); !slices.Equal(got, want) {
		t.Errorf("%v answered, want %v", got, want)
	}
}

// TestUnhealthyEndpoint: an endpoint gets no requests while its checks fail, unless those of all
// endpoints do. Nothing of that needs a reload. Without the annotation nothing is checked.
func TestUnhealthyEndpoint(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2, often...)
	reloads := s.g.Value(s.g.Metrics.Reloads)
	s.wantAnswers(t, s.addresses...)
	s.statuses[0].Store(http.StatusInternalServerError)
	s.wantUnhealthy(t, "1 of 2")
	s.wantAnswers(t, s.addresses[1])
	if !strings.Contains(s.g.Log.String(), s.addresses[0]+" (GET /healthz: status 500)") {
		t.Error("the finding does not say why")
	}
	s.statuses[1].Store(http.StatusNotFound)
	s.wantUnhealthy(t, "2 of 2")
	s.wantAnswers(t, s.addresses...)
	s.statuses[0].Store(http.StatusNoContent)
	s.wantUnhealthy(t, "1 of 2")
	s.wantAnswers(t, s.addresses[0])
	s.statuses[1].Store(http.StatusFound)
	s.wantUnhealthy(t, "none")
	s.wantAnswers(t, s.addresses...)
	s.statuses[1].Store(http.StatusBadGateway)
	s.wantUnhealthy(t, "1 of 2")
	s.g.Apply(headgatetest.Ingress("web", host, "/", "shop"))
	s.wantUnhealthy(t, "none")
	s.wantAnswers(t, s.addresses...)
	if n := s.g.Value(s.g.Metrics.Reloads) - reloads; n != 0 {
		t.Errorf("%d reloads", n)
	}
}

// TestSettingsChangeLive: checks follow the annotations and the keys at once, though the next check
// would be due in ten minutes.
func TestSettingsChangeLive(t *testing.T) {
	t.Parallel()
	slow := []string{"health-check: http", "health-check-path: /healthz", "health-check-timeout: 30s", "health-check-unhealthy-threshold: 1", "health-check-healthy-threshold: 1"}
	s := newShop(t, 2, append(slow, "health-check-interval: 10m")...)
	s.statuses[0].Store(http.StatusInternalServerError)
	s.g.Apply(headgatetest.Ingress("web", host, "/", "shop", append(slow, "health-check-interval: 1s", "health-check-host: a.test")...))
	s.wantUnhealthy(t, "1 of 2")
	if _, ok := s.checked.Load("a.test"); !ok {
		t.Error("the check has another Host header")
	}
	s.g.Apply(headgatetest.Ingress("web", host, "/", "shop", append(slow, "health-check-interval: 10m")...))
	s.wantUnhealthy(t, "none")
	s.g.Apply(headgatetest.Config("health-check-interval: 10m") + headgatetest.Ingress("web", host, "/", "shop", slow...))
	s.g.Apply(headgatetest.Config("health-check-interval: 1s"))
	s.wantUnhealthy(t, "1 of 2")
	s.wantAnswers(t, s.addresses[1])
}

// TestSession: a session whose endpoint is unhealthy begins again elsewhere.
func TestSession(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2, append(slices.Clone(often), "affinity: cookie", "affinity-mode: persistent")...)
	first := s.g.Get(host, "/").WantStatus(t, http.StatusOK)
	at := first.Header.Get("X-Endpoint")
	cookie, _, _ := strings.Cut(first.Header.Get("Set-Cookie"), ";")
	ask := func() string {
		return s.g.Do(headgatetest.Request{Host: host, Header: http.Header{"Cookie": {cookie}}}).WantStatus(t, http.StatusOK).Header.Get("X-Endpoint")
	}
	for range 10 {
		if got := ask(); got != at {
			t.Fatalf("the session moved from %s to %s", at, got)
		}
	}
	s.statuses[slices.Index(s.addresses, at)].Store(http.StatusInternalServerError)
	s.wantUnhealthy(t, "1 of 2")
	for range 10 {
		if got := ask(); got == at {
			t.Fatal("the session stays at its endpoint")
		}
	}
}
