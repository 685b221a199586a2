package connectionheader_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// The backend gets the header, and a neighbour's does not; also in the location of a profile,
// and where the client asks for an upgrade.
func TestConnection(t *testing.T) {
	t.Parallel()
	backend := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Heard", strings.Join(r.Header["Connection"], ",")+" "+r.Header.Get("Upgrade"))
		if r.Close {
			w.Header().Set("X-Heard", "close "+r.Header.Get("Upgrade"))
		}
	}))
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("a") + headgatetest.Endpoints("a", backend) +
		headgatetest.Ingress("close", "close.test", "/", "a", "connection-proxy-header: close") +
		headgatetest.Ingress("profile", "profile.test", "/", "a", "connection-proxy-header: close", "proxy-buffer-size: 16k") +
		headgatetest.Ingress("keep", "keep.test", "/", "a", "connection-proxy-header: keep-alive") +
		headgatetest.Ingress("bad", "bad.test", "/", "a", "connection-proxy-header: upgrade") +
		headgatetest.Ingress("plain", "plain.test", "/", "a")})
	for host, want := range map[string]string{"close.test": "close", "profile.test": "close", "keep.test": "keep-alive", "bad.test": "", "plain.test": ""} {
		if got := g.Get(host, "/").WantStatus(t, 200).Header.Get("X-Heard"); strings.TrimSpace(got) != want {
			t.Errorf("%s: %q, want %q", host, got, want)
		}
	}
	asks := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}
	if got := g.Do(headgatetest.Request{Host: "close.test", Header: asks}).WantStatus(t, 200).Header.Get("X-Heard"); got != "close websocket" {
		t.Errorf("an upgrade: %q", got)
	}
}
