package proxying_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A pool is endpoints that answer as a request's path asks for, and what of
// them were asked by whom.
type pool struct {
	addresses []string
	mu        sync.Mutex
	// asked are the endpoints, by their number, that a request came to, by its
	// X-Test.
	asked map[string][]int
}

func newPool(t *testing.T, size int) *pool {
	t.Helper()
	c := &pool{asked: map[string][]int{}}
	for number := range size {
		c.addresses = append(c.addresses, headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			c.mu.Lock()
			id := r.Header.Get("X-Test")
			c.asked[id] = append(c.asked[id], number)
			c.mu.Unlock()
			c.answer(w, r, number)
		})))
	}
	return c
}

func (c *pool) service(name string, size int) string {
	return headgatetest.Service(name) + headgatetest.Endpoints(name, c.addresses[:size]...)
}

func (c *pool) answer(w http.ResponseWriter, r *http.Request, number int) {
	switch kind := strings.TrimPrefix(r.URL.Path, "/"); kind {
	case "close", "bad":
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		if kind == "bad" {
			fmt.Fprint(connection, "HTTP/1.1 200 OK\r\nBad\x00Name: x\r\nContent-Length: 0\r\n\r\n")
		}
		connection.Close()
	case "slow":
		select {
		case <-time.After(headgatetest.Timeout):
		case <-r.Context().Done():
		}
	case "last":
		// The first endpoint only is well.
		if number > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case "":
		fmt.Fprint(w, r.Proto)
	default:
		status, err := strconv.Atoi(kind)
		if err != nil {
			status = http.StatusTeapot
		}
		w.WriteHeader(status)
	}
}

// ask sends a request and returns who was asked for it.
func (c *pool) ask(t *testing.T, g *headgatetest.Instance, method, host, path string) (headgatetest.Response, []int) {
	t.Helper()
	id := method + host + path
	request := headgatetest.Request{Method: method, Host: host, Path: path, Header: http.Header{"X-Test": {id}}}
	if method == http.MethodPost {
		request.Body = strings.NewReader("x")
	}
	r := g.Do(request)
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked[id]
	delete(c.asked, id)
	return r, asked
}

func TestRetries(t *testing.T) {
	t.Parallel()
	c := newPool(t, 6)
	// An error on a connection that was kept costs no try: the endpoint may have
	// closed it before the request came.
	manifests := c.service("three", 3) + c.service("six", 6) + headgatetest.Config("upstream-keepalive-connections: 0")
	cases := []struct {
		method, path, service string
		annotations           []string
		status, tries         int
	}{
		{"GET", "/close", "six", nil, 502, 3},
		{"POST", "/close", "six", nil, 502, 1},
		{"GET", "/503", "three", nil, 503, 1},
		{"GET", "/close", "three", []string{"proxy-next-upstream: off"}, 502, 1},
		{"GET", "/close", "three", []string{"proxy-next-upstream: x"}, 502, 3},
		{"GET", "/503", "three", []string{"proxy-next-upstream: http_503"}, 503, 3},
		{"POST", "/503", "three", []string{"proxy-next-upstream: http_503"}, 503, 1},
		{"POST", "/503", "three", []string{"proxy-next-upstream: http_503 non_idempotent"}, 503, 3},
		{"GET", "/404", "three", []string{"proxy-next-upstream: http_404"}, 404, 3},
		{"GET", "/404", "three", []string{"proxy-next-upstream: http_403"}, 404, 1},
		{"GET", "/429", "three", []string{"proxy-next-upstream: http_429"}, 429, 3},
		{"GET", "/bad", "three", []string{"proxy-next-upstream: error"}, 502, 1},
		{"GET", "/bad", "three", []string{"proxy-next-upstream: invalid_header"}, 502, 3},
		{"GET", "/close", "six", []string{"proxy-next-upstream-tries: 1"}, 502, 1},
		{"GET", "/close", "six", []string{"proxy-next-upstream-tries: 2"}, 502, 2},
		{"GET", "/close", "six", []string{"proxy-next-upstream-tries: 0"}, 502, 6},
		{"GET", "/close", "three", []string{"proxy-next-upstream-tries: 0"}, 502, 3},
		{"GET", "/close", "three", []string{"proxy-next-upstream-tries: 5"}, 502, 5},
		{"GET", "/close", "six", []string{"proxy-next-upstream-tries: x"}, 502, 3},
		{"GET", "/slow", "three", []string{"proxy-read-timeout: 1"}, 504, 3},
		{"GET", "/slow", "three", []string{"proxy-read-timeout: 1", "proxy-next-upstream-timeout: 1"}, 504, 1},
		// It ends amid the second try, with seconds to spare before and after.
		{"GET", "/slow", "three", []string{"proxy-read-timeout: 3", "proxy-next-upstream-timeout: 5"}, 504, 2},
	}
	for i, k := range cases {
		manifests += headgatetest.Ingress(fmt.Sprint("i", i), fmt.Sprintf("h%d.test", i), "/", k.service, k.annotations...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: manifests})
	for i, k := range cases {
		t.Run(fmt.Sprint(k.method, k.path, k.annotations), func(t *testing.T) {
			t.Parallel()
			r, asked := c.ask(t, g, k.method, fmt.Sprintf("h%d.test", i), k.path)
			slices.Sort(asked)
			if r.Status != k.status || len(asked) != k.tries {
				t.Errorf("%d after asking %v, want %d after %d", r.Status, asked, k.status, k.tries)
			}
			if others := slices.Compact(slices.Clone(asked)); len(others) < min(k.tries, 3) {
				t.Errorf("of three endpoints and more %v were asked", asked)
			}
		})
	}
}

// TestRetriesAskOthers: also while other clients ask, a request that is sent
// again finds the one endpoint that works.
func TestRetriesAskOthers(t *testing.T) {
	t.Parallel()
	c := newPool(t, 4)
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Manifests: c.service("four", 4) +
		headgatetest.Ingress("a", "a.test", "/", "four", "proxy-next-upstream: http_503", "proxy-next-upstream-tries: 4", "retry-budget: 100")})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			client := g.NewClient(false)
			defer client.CloseIdleConnections()
			for range 40 {
				if r, err := g.Try(client, headgatetest.Request{Host: "a.test", Path: "/last"}); err != nil || r.Status != 200 {
					t.Errorf("%d, %v", r.Status, err)
				}
			}
		})
	}
	group.Wait()
}

func TestRetryKeys(t *testing.T) {
	t.Parallel()
	c := newPool(t, 6)
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: c.service("six", 6) + headgatetest.Ingress("a", "a.test", "/", "six") +
		headgatetest.Ingress("own", "own.test", "/", "six", "proxy-next-upstream: http_500", "proxy-next-upstream-tries: 2", "proxy-http-version: 1.1")})
	tries := func(method, host, path string, want int) {
		t.Helper()
		if _, asked := c.ask(t, g, method, host, path); len(asked) != want {
			t.Errorf("%s %s%s asked %v, want %d", method, host, path, asked, want)
		}
	}
	g.ApplyReloading(headgatetest.Config("proxy-next-upstream: error http_502", "retry-non-idempotent: true", "proxy-http-version: 1.0"))
	reloads := g.Value(g.Metrics.Reloads)
	g.Apply(headgatetest.Config("proxy-next-upstream: error http_502", "retry-non-idempotent: true", "proxy-http-version: 1.0", "proxy-next-upstream-tries: 4"))
	tries("GET", "a.test", "/502", 4)
	tries("POST", "a.test", "/502", 4)
	tries("GET", "a.test", "/500", 1)
	tries("GET", "own.test", "/502", 1)
	tries("POST", "own.test", "/500", 2)
	if n := g.Value(g.Metrics.Reloads) - reloads; n != 0 {
		t.Errorf("%d reloads for the number of tries", n)
	}
	for host, want := range map[string]string{"a.test": "HTTP/1.0", "own.test": "HTTP/1.1"} {
		if r := g.Get(host, "/").WantStatus(t, 200); r.Body != want {
			t.Errorf("%s: the backend was asked in %s, want %s", host, r.Body, want)
		}
	}
}
