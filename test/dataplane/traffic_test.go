package dataplane_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// samples are the values of a family by its labels, in the form "name=value name=value" with the labels
// that are asked for; of histograms the numbers of values.
func samples(t testing.TB, g *headgatetest.Instance, family string, names ...string) map[string]int {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]int{}
	for _, f := range families {
		if f.GetName() != family {
			continue
		}
		for _, m := range f.GetMetric() {
			var texts []string
			for _, name := range names {
				for _, label := range m.GetLabel() {
					if label.GetName() == name && label.GetValue() != "" {
						texts = append(texts, name+"="+label.GetValue())
					}
				}
			}
			value := m.GetCounter().GetValue()
			if h := m.GetHistogram(); h != nil {
				value = float64(h.GetSampleCount())
			}
			values[strings.Join(texts, " ")] += int(value)
		}
	}
	return values
}

const (
	requestsFamily  = "nginx_ingress_controller_requests"
	uncountedFamily = "headgate_uncounted_requests_total"
)

// wantSamples waits until a family has the values, and no others.
func wantSamples(t testing.TB, g *headgatetest.Instance, family string, names []string, want map[string]int) {
	t.Helper()
	var got map[string]int
	defer func() {
		if t.Failed() {
			t.Logf("%s:\n%v, want\n%v", family, got, want)
		}
	}()
	headgatetest.Eventually(t, family, func() bool {
		got = samples(t, g, family, names...)
		return fmt.Sprint(got) == fmt.Sprint(want)
	})
}

// Each request is counted once, in the series of the rule that it matched, by all workers
// together.
func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	tea := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	g := headgatetest.Start(t, headgatetest.Options{
		Workers: 4, Traffic: headgatetest.Traffic(), Timing: headgatetest.Hasty(),
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + served("two", headgatetest.StartEcho(t, "two")) + served("tea", tea) + served("dead", "127.0.0.1:1") +
			headgatetest.Ingress("web", "a.test", "/", "one") + headgatetest.Ingress("tea", "a.test", "/tea", "tea") +
			headgatetest.Ingress("dead", "a.test", "/dead", "dead") +
			headgatetest.Ingress("wild", "*.wild.test", "/", "one", "server-alias: alias.test,~^[0-9]+\\.regex\\.test$") +
			headgatetest.Ingress("expressions", "re.test", "/x/(a|b)", "one", "use-regex: true") +
			headgatetest.Ingress("secured", "secured.test", "/", "one", "auth-type: basic", "auth-secret: missing") +
			headgatetest.Ingress("moved", "moved.test", "/", "one", "permanent-redirect: http://x.test/") +
			headgatetest.Ingress("main", "canary.test", "/", "one") +
			headgatetest.Ingress("share", "canary.test", "/", "two", "canary: true", "canary-by-header: X-Canary") +
			headgatetest.Ingress("buffered", "profile.test", "/", "one", "proxy-buffering: on"),
	})
	for range 40 {
		g.Get("a.test", "/").WantStatus(t, 200)
		g.Do(headgatetest.Request{Host: "a.test", Path: "/", Method: "POST", Body: strings.NewReader("hello")}).WantStatus(t, 200)
		g.Get("a.test", "/tea").WantStatus(t, 418)
		g.Get("a.test", "/dead").WantStatus(t, 502)
		g.Get("profile.test", "/").WantStatus(t, 200)
		g.Get("moved.test", "/").WantStatus(t, 301)
	}
	for range 3 {
		g.Get("secured.test", "/").WantStatus(t, 503)
		g.Get("x.wild.test", "/").WantStatus(t, 200)
		g.Get("alias.test", "/").WantStatus(t, 200)
		g.Get("12.regex.test", "/").WantStatus(t, 200)
		g.Get("re.test", "/x/a").WantStatus(t, 200)
		g.Get("canary.test", "/").WantStatus(t, 200)
		g.Do(headgatetest.Request{Host: "canary.test", Path: "/", Header: http.Header{"X-Canary": {"always"}}}).WantStatus(t, 200)
		g.Get("unknown.test", "/").WantStatus(t, 404)
		g.Get("unknown.test", "/healthz").WantStatus(t, 200)
	}
	names := []string{"host", "ingress", "service", "path", "canary", "method", "status"}
	wantSamples(t, g, requestsFamily, names, map[string]int{
		"host=a.test ingress=web service=one path=/ method=GET status=200":                             40,
		"host=a.test ingress=web service=one path=/ method=POST status=200":                            40,
		"host=a.test ingress=tea service=tea path=/tea method=GET status=418":                          40,
		"host=a.test ingress=dead service=dead path=/dead method=GET status=502":                       40,
		"host=profile.test ingress=buffered service=one path=/ method=GET status=200":                  40,
		"host=moved.test ingress=moved service=one path=/ method=GET status=301":                       40,
		"host=secured.test ingress=secured service=one path=/ method=GET status=503":                   3,
		"host=*.wild.test ingress=wild service=one path=/ method=GET status=200":                       6,
		"host=alias.test ingress=wild service=one path=/ method=GET status=200":                        3,
		"host=re.test ingress=expressions service=one path=/x/(a|b) method=GET status=200":             3,
		"host=canary.test ingress=main service=one path=/ method=GET status=200":                       3,
		"host=canary.test ingress=main service=one path=/ canary=default-two-80 method=GET status=200": 3,
	})
	wantSamples(t, g, uncountedFamily, []string{"reason"}, map[string]int{"reason=ingress": 3, "reason=replaced": 0, "reason=lost": 0})

	// What only a backend takes has no value for requests that had none, or several.
	byIngress := []string{"ingress"}
	for family, want := range map[string]map[string]int{
		"request_duration_seconds": {"ingress=web": 80, "ingress=tea": 40, "ingress=dead": 40, "ingress=buffered": 40, "ingress=moved": 40, "ingress=secured": 3, "ingress=wild": 9, "ingress=expressions": 3, "ingress=main": 6},
		"request_size":             {"ingress=web": 80, "ingress=tea": 40, "ingress=dead": 40, "ingress=buffered": 40, "ingress=moved": 40, "ingress=secured": 3, "ingress=wild": 9, "ingress=expressions": 3, "ingress=main": 6},
		"connect_duration_seconds": {"ingress=web": 80, "ingress=tea": 40, "ingress=buffered": 40, "ingress=wild": 9, "ingress=expressions": 3, "ingress=main": 6},
	} {
		wantSamples(t, g, "nginx_ingress_controller_"+family, byIngress, want)
	}

	// What is deleted has no series, and neither has a name.
	g.Delete(headgatetest.Ingress("tea", "a.test", "/tea", "tea"))
	g.Apply(headgatetest.Ingress("wild", "*.wild.test", "/", "one"))
	g.Apply(headgatetest.Ingress("moved", "moved.test", "/elsewhere", "one"))
	g.Delete(headgatetest.Ingress("share", "canary.test", "/", "two"))
	after := samples(t, g, requestsFamily, "host", "path", "canary")
	for _, gone := range []string{"host=a.test path=/tea", "host=alias.test path=/", "host=moved.test path=/", "host=canary.test path=/ canary=default-two-80"} {
		if _, found := after[gone]; found {
			t.Errorf("there is still a series with %s", gone)
		}
	}
	if after["host=*.wild.test path=/"] != 6 || after["host=a.test path=/"] != 80 {
		t.Errorf("others went as well: %v", after)
	}
}

// Reloads, and workers that end, lose no request, and counters never go back.
func TestReloadsLoseNoCount(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	g := headgatetest.Start(t, headgatetest.Options{
		Workers: 4, Traffic: headgatetest.Traffic(), Timing: headgatetest.Hasty(),
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("web", "a.test", "/", "one"),
	})
	var sent atomic.Int64
	var clients sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		clients.Add(1)
		go func() {
			defer clients.Done()
			client := g.NewClient(false)
			for {
				select {
				case <-stop:
					return
				default:
				}
				response, err := g.Try(client, headgatetest.Request{Host: "a.test", Path: "/"})
				if err == nil && response.Status == 200 {
					sent.Add(1)
				} else {
					t.Errorf("a request failed: %v %v", response.Status, err)
					return
				}
			}
		}()
	}
	last := 0
	for range 3 {
		reload(t, g)
		for range 20 {
			now := samples(t, g, requestsFamily)[""]
			if now < last {
				t.Errorf("the counter went back from %d to %d", last, now)
			}
			last = now
		}
	}
	close(stop)
	clients.Wait()
	wantSamples(t, g, requestsFamily, nil, map[string]int{"": int(sent.Load())})
}

// A namespace beyond its budget has one more series, and nothing is lost.
func TestTrafficBudget(t *testing.T) {
	t.Parallel()
	settings := headgatetest.Traffic()
	settings.Budget, settings.AnyHost = 3, true
	g := headgatetest.Start(t, headgatetest.Options{
		Workers: 2, Traffic: settings, Timing: headgatetest.Hasty(),
		Manifests: served("one", headgatetest.StartEcho(t, "one")) + headgatetest.Ingress("web", "*.a.test", "/", "one"),
	})
	for i := range 10 {
		g.Get(fmt.Sprintf("h%d.a.test", i), "/").WantStatus(t, 200)
	}
	g.Get("unknown.test", "/").WantStatus(t, 404)
	wantSamples(t, g, requestsFamily, []string{"namespace", "ingress"}, map[string]int{
		"namespace=default ingress=web": 3, "namespace=default ingress=_others": 7, "": 1,
	})
	headgatetest.Eventually(t, "a finding about the budget", func() bool {
		return strings.Contains(g.Log.String(), "more than 3 series of request metrics")
	})
	// The literal names are there, and the class of statuses beyond the budget.
	hosts := samples(t, g, requestsFamily, "host", "status")
	if n := len(hosts); n != 5 || hosts["status=2xx"] != 7 || hosts["host=unknown.test status=404"] != 1 {
		t.Errorf("series by host: %v", hosts)
	}
	g.Delete(headgatetest.Ingress("web", "*.a.test", "/", "one"))
	wantSamples(t, g, requestsFamily, []string{"namespace", "ingress"}, map[string]int{"": 1})
}
