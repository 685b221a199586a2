package externalauth_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// An authService decides whether requests may pass. It answers as the
// path says: /status/NNN, and /cookie, which wants the cookie "session=ok"; or
// as the header Answer says, "NAME: VALUE" lines for its answer.
type authService struct {
	at   string
	mu   sync.Mutex
	seen []asked
}

// An asked is what an auth service saw of a request.
type asked struct {
	*http.Request
	body       int64
	serverName string
}

func startAuthService(t *testing.T) *authService {
	j := &authService{}
	j.at = headgatetest.StartBackend(t, j)
	return j
}

// startAuthServiceAt runs one at another address, with TLS or without.
func startAuthServiceAt(t *testing.T, address string, secure bool) *authService {
	t.Helper()
	j := &authService{}
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: j}}
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	j.at = listener.Addr().String()
	return j
}

func (j *authService) port() string {
	return strconv.Itoa(int(netip.MustParseAddrPort(j.at).Port()))
}

func (j *authService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		return
	}
	a := asked{Request: r.Clone(r.Context()), body: n}
	if r.TLS != nil {
		a.serverName = r.TLS.ServerName
	}
	j.mu.Lock()
	j.seen = append(j.seen, a)
	j.mu.Unlock()
	w.Header().Set("X-User", "alice")
	w.Header().Set("X-Groups", "staff")
	w.Header().Add("X-Groups", "admin")
	for line := range strings.SplitSeq(r.Header.Get("Answer"), ";") {
		if name, value, ok := strings.Cut(line, ": "); ok {
			w.Header().Add(strings.TrimSpace(name), value)
		}
	}
	status := 200
	if text, ok := strings.CutPrefix(r.URL.Path, "/status/"); ok {
		status, _ = strconv.Atoi(text)
	}
	if r.URL.Path == "/cookie" && !strings.Contains(r.Header.Get("Cookie"), "session=ok") {
		status = 401
	}
	w.WriteHeader(status)
}

// last is what it saw last, and forgets all.
func (j *authService) last(t *testing.T) asked {
	t.Helper()
	seen := j.take()
	if len(seen) == 0 {
		t.Fatal("the service was not asked")
	}
	return seen[len(seen)-1]
}

func (j *authService) take() []asked {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := j.seen
	j.seen = nil
	return seen
}

// wantAsked fails the test unless it was asked so often since the last time.
func (j *authService) wantAsked(t *testing.T, want int) {
	t.Helper()
	if got := len(j.take()); got != want {
		t.Errorf("asked %d times, want %d", got, want)
	}
}

// guarded is an Ingress for / of a host with an auth-url of the service's.
func (j *authService) guarded(host, path string, annotations ...string) string {
	name, _, _ := strings.Cut(host, ".")
	return headgatetest.Ingress(strings.ReplaceAll(name, "*", "star"), host, "/", "app", append([]string{"auth-url: http://" + j.at + path}, annotations...)...)
}

// app is the backend that is guarded.
func app(t *testing.T) string {
	t.Helper()
	return headgatetest.Service("app") + headgatetest.Endpoints("app", headgatetest.StartEcho(t, "app"))
}
