package snippet_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestFallbackGetsNoHeaders: what proxy_set_header says is for the backend of the path. The
// fallback backend gets the client's headers, also if no backend was asked before.
func TestFallbackGetsNoHeaders(t *testing.T) {
	t.Parallel()
	backend := headgatetest.StartBackend(t, http.HandlerFunc(sending))
	g := start(t, headgatetest.Service("own")+headgatetest.Endpoints("own", backend)+headgatetest.Service("pages")+headgatetest.Endpoints("pages", backend)+
		headgatetest.Ingress("one", "a.test", "/", "own", `configuration-snippet: proxy_set_header X-Set "secret $host"; proxy_set_header X-Two a; proxy_set_header X-Two b; proxy_set_header X-Client "";`,
			"custom-http-errors: 404,413", "default-backend: pages", "proxy-body-size: 5"))
	headgatetest.EveryProtocol(func(http2 bool, scheme string) {
		for _, r := range []headgatetest.Request{{Path: "/404"}, {Path: "/", Method: "POST", Body: strings.NewReader("too long")}} {
			r.Host, r.Scheme, r.HTTP2, r.Header = "a.test", scheme, http2, http.Header{"X-Client": {"client"}}
			got := g.Do(r).Header
			if got.Get("Got-X-Code") == "" {
				t.Fatalf("%s: the fallback backend does not answer: %v", r.Path, got)
			}
			if got.Get("Got-X-Set") != "" || got.Get("Got-X-Two") != "" || got.Get("Got-X-Client") != "client" || got.Get("Got-X-Scheme") != scheme {
				t.Errorf("%s: the fallback backend got %v", r.Path, got)
			}
		}
	})
	if got := g.Do(headgatetest.Request{Host: "a.test", Header: http.Header{"X-Client": {"client"}}}).Header; got.Get("Got-X-Set") != "secret a.test" || got.Get("Got-X-Client") != "" {
		t.Errorf("the backend of the path got %v", got)
	}
}

// TestNoLookalikes: what a snippet sets or removes, no client can send with underscores.
func TestNoLookalikes(t *testing.T) {
	t.Parallel()
	backend := headgatetest.StartPlain(t, func(r *http.Request) (int, string) {
		lines := "X-Sent: " + r.Header.Get("X_Set") + r.Header.Get("X-Set") + r.Header.Get("X_Gone") + r.Header.Get("X_In") + r.Header.Get("X-In") + r.Header.Get("X_Off") + r.Header.Get("X_other") + "\r\n"
		return http.StatusOK, lines
	})
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("web") + headgatetest.Endpoints("web", backend) +
		headgatetest.Config("allow-snippet-annotations: true", "annotations-risk-level: Critical", "enable-underscores-in-headers: true") +
		of("a", "configuration-snippet", `proxy_set_header X-Set s; proxy_set_header X-Gone ""; more_set_input_headers "X-In: i"; more_clear_input_headers X-Off; add_header X-Kept $http_x_set;`)})
	r := g.Do(headgatetest.Request{Host: "a.test", Header: http.Header{"X_Set": {"1"}, "X_gone": {"2"}, "X_In": {"3"}, "x_off": {"4"}, "X_other": {"o"}}}).WantStatus(t, 200)
	if got := r.Header.Get("X-Sent"); got != "sio" {
		t.Errorf("the backend got %q", got)
	}
	// Only the backend sees a difference.
	if got := r.Header.Get("X-Kept"); got != "1" {
		t.Errorf("of the client there is %q", got)
	}
}
