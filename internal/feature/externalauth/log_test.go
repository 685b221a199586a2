package externalauth_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestLog: calls of auth services are in the access log if the key says so, and metrics leave
// them out.
func TestLog(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	service := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RawQuery, "refused") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	echo := headgatetest.StartEcho(t, "web")
	file := filepath.Join(t.TempDir(), "access.log")
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, AccessLog: file, Timing: headgatetest.Hasty(), Traffic: headgatetest.Traffic(), Manifests: headgatetest.Service("web") +
		headgatetest.Endpoints("web", echo) + headgatetest.Ingress("a", "a.test", "/", "web", "auth-url: http://"+service+"/check?$args")})
	// lines are the statuses and the addresses in the lines about a request.
	form := regexp.MustCompile(`"GET /\?(\w+) HTTP/[0-9.]+" (\d+) .* (\S+) \S+ \S+ (\S+) [0-9a-f]{32}$`)
	lines := func(mark string) (list []string) {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			if f := form.FindStringSubmatch(strings.TrimSpace(line)); f != nil && f[1] == mark {
				list = append(list, f[2]+" "+f[3])
			}
		}
		return list
	}
	want := func(mark string, status int, http2 bool, want ...string) {
		t.Helper()
		r := headgatetest.Request{Host: "a.test", Path: "/?" + mark, HTTP2: http2}
		if http2 {
			r.Scheme = "https"
		}
		g.Do(r).WantStatus(t, status)
		headgatetest.Eventually(t, "the lines about "+mark+" are there", func() bool { return len(lines(mark)) >= len(want) })
		if got := lines(mark); !slices.Equal(got, want) {
			t.Errorf("%s: the log has %q, want %q", mark, got, want)
		}
	}
	want("first", 200, false, "200 "+echo)
	g.Apply(headgatetest.Config("enable-auth-access-log: true"))
	want("second", 200, false, "200 "+service, "200 "+echo)
	want("third", 200, true, "200 "+service, "200 "+echo)
	want("refused1", 401, false, "401 "+service, "401 -")
	g.Apply(headgatetest.Config("enable-auth-access-log: false"))
	want("fourth", 200, false, "200 "+echo)
	want("refused2", 401, true, "401 -")
	// The worker reports in the order of requests.
	g.Do(headgatetest.Request{Method: "POST", Host: "a.test"}).WantStatus(t, 200)
	headgatetest.Eventually(t, "metrics have the last request", func() bool { return requests(t, g, "POST") == 1 })
	if n := requests(t, g, "GET"); n != 6 {
		t.Errorf("metrics have %v requests, want 6", n)
	}
}

// requests is the number of requests with a method in metrics.
func requests(t *testing.T, g *headgatetest.Instance, method string) (n float64) {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "nginx_ingress_controller_requests" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "method" && label.GetValue() == method {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}
