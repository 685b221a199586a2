package ratelimit_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// breaking are the features with one more, which fails at a phase that a header names.
func breaking() []feature.Feature {
	const name = "breaking"
	return append(all.Features(), feature.Feature{
		Name: name,
		Route: func(_ feature.Values, out *feature.RouteOut) {
			feature.Add(out.Route, name, struct{}{})
			out.Route.Variant.HeaderFilter = true
		},
		Lua: featuretest.Module(name, `
local module = {}
for _, phase in ipairs({ "authenticate", "request_headers", "before_exec", "header_filter", "balancer" }) do
    module[phase] = function()
        if ngx.var.http_x_break == phase then
            error("as the test asks for")
        end
        return phase == "authenticate" and "neutral" or nil
    end
end
return module`),
	})
}

// However a request ends, its place is free again.
func TestConnectionsEnd(t *testing.T) {
	t.Parallel()
	waiting, release := make(chan struct{}), make(chan struct{})
	slow := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Wait") == "" {
			return
		}
		waiting <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}))
	limited := func(name, service string, annotations ...string) string {
		return headgatetest.Ingress(name, name+".test", "/", service, append(annotations, "limit-connections: 1")...)
	}
	g := headgatetest.Start(t, headgatetest.Options{Features: breaking(), Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("slow") + headgatetest.Endpoints("slow", slow) +
		headgatetest.Service("dead") + headgatetest.Endpoints("dead", "127.0.0.1:1") + headgatetest.Config("limit-conn-status-code: 429") +
		"---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData: {auth: 'user:{PLAIN}pass'}\n" +
		limited("slow", "slow") + limited("dead", "dead") + limited("password", "slow", "auth-type: basic", "auth-secret: users") +
		limited("url", "slow", "auth-url: http://127.0.0.1:1/") + limited("small", "slow", "proxy-body-size: 1k")})
	// A request gives its place back after its response: until then others get 429.
	wants := func(want int, r headgatetest.Request) {
		t.Helper()
		headgatetest.Eventually(t, fmt.Sprintf("%s answers %d", r.Host, want), func() bool {
			response := g.Do(r)
			if response.Status != want && response.Status != http.StatusTooManyRequests {
				t.Fatalf("%s answers %d, want %d", r.Host, response.Status, want)
			}
			return response.Status == want
		})
	}
	free := func(after string) {
		t.Helper()
		headgatetest.Eventually(t, "there is a place after "+after, func() bool { return g.Get("slow.test", "/").Status == 200 })
	}
	for range 3 {
		wants(502, headgatetest.Request{Host: "dead.test"})
		wants(401, headgatetest.Request{Host: "password.test"})
		wants(500, headgatetest.Request{Host: "url.test"})
		wants(413, headgatetest.Request{Method: "POST", Host: "small.test", Body: strings.NewReader(strings.Repeat("x", 2000))})
		for _, phase := range []string{"authenticate", "request_headers", "before_exec", "header_filter", "balancer"} {
			headgatetest.Eventually(t, "an error in "+phase, func() bool {
				r, err := g.Try(g.NewClient(false), headgatetest.Request{Host: "slow.test", Method: "POST", Body: strings.NewReader("x"), Header: http.Header{"X-Break": {phase}}})
				return err != nil || r.Status >= 500
			})
			free("an error in " + phase)
		}
		_, _ = g.Try(g.NewClient(false), headgatetest.Request{Host: "password.test", Header: http.Header{"X-Break": {"header_filter"}}})
		wants(401, headgatetest.Request{Host: "password.test"})
	}
	// One client that waits has the place, over each protocol, until it goes.
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://slow.test/", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Wait", "yes")
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			client := g.NewClient(http2)
			r, err := client.Do(request)
			for ; err == nil; r, err = client.Do(request) {
				r.Body.Close()
				// The request before gives its place back after its response.
				if r.StatusCode != http.StatusTooManyRequests {
					return
				}
			}
		}()
		<-waiting
		g.Get("slow.test", "/").WantStatus(t, 429)
		cancel()
		<-ended
		free("a client that goes away")
	})
	// A worker that is killed takes no place with it.
	go func() {
		for {
			r, err := g.Try(g.NewClient(false), headgatetest.Request{Host: "slow.test", Header: http.Header{"X-Wait": {"yes"}}})
			if err != nil || r.Status != http.StatusTooManyRequests {
				return
			}
		}
	}()
	<-waiting
	for _, pid := range workers(t, g) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	headgatetest.Eventually(t, "there is a place after a crash", func() bool {
		r, err := g.Try(g.NewClient(false), headgatetest.Request{Host: "slow.test"})
		return err == nil && r.Status == 200
	})
	close(release)
}

// workers are the pids of NGINX's workers.
func workers(t *testing.T, g *headgatetest.Instance) []int {
	t.Helper()
	master := g.Process.PID()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", master, master))
	if err != nil {
		t.Fatal(err)
	}
	var list []int
	for _, field := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pid)
	}
	return list
}

// The same where another backend answers, and where a connection outlives its workers.
func TestConnectionsEndElsewhere(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	at := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Do") {
		case "fail":
			w.WriteHeader(500)
		case "wait":
			<-r.Context().Done()
		case "upgrade":
			connection, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer connection.Close()
			fmt.Fprint(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
			_, _ = connection.Read(make([]byte, 1))
		}
	}))
	pages := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418) }))
	const limit = "limit-connections: 1"
	g := headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", at) +
		headgatetest.Service("pages") + headgatetest.Endpoints("pages", pages) + headgatetest.Config("limit-conn-status-code: 429", "use-http3: true") +
		headgatetest.Ingress("web", "a.test", "/", "a", limit, "custom-http-errors: 413,500,504", "default-backend: pages", "proxy-read-timeout: 1", "proxy-next-upstream-tries: 1", "proxy-body-size: 1k") +
		headgatetest.Ingress("canary", "a.test", "/", "pages", "canary: true", "canary-by-header: X-New") + headgatetest.Ingress("long", "long.test", "/", "a", limit)})
	wants := func(want int, r headgatetest.Request) {
		t.Helper()
		headgatetest.Eventually(t, fmt.Sprintf("%s answers %d to %v", r.Host, want, r.Header), func() bool {
			if r.Method == http.MethodPost {
				r.Body = strings.NewReader(strings.Repeat("x", 2000))
			}
			return g.Do(r).Status == want
		})
	}
	for _, r := range g.Protocols() {
		r.Host = "a.test"
		for _, header := range []http.Header{{"X-Do": {"fail"}}, {"X-Do": {"wait"}}, {"X-New": {"always"}}} {
			r.Header = header
			wants(418, r)
		}
		r.Header, r.Method = nil, http.MethodPost
		wants(418, r)
		r.Method = ""
		wants(200, r)
	}
	connection := headgatetest.Dial(t, g.HTTP)
	fmt.Fprint(connection, "GET / HTTP/1.1\r\nHost: long.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Do: upgrade\r\n\r\n")
	if _, err := connection.Read(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	g.Get("long.test", "/").WantStatus(t, 429)
	g.ApplyReloading(headgatetest.Config("limit-conn-status-code: 429", "keep-alive-requests: 77"))
	g.Get("long.test", "/").WantStatus(t, 429)
	connection.Close()
	wants(200, headgatetest.Request{Host: "long.test"})
}
