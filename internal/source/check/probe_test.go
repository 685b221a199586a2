package check

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/test/porttest"
)

// ask makes one check, and returns what is wrong.
func ask(t *testing.T, at netip.AddrPort, check source.HealthCheck) string {
	t.Helper()
	if check.Timeout == 0 {
		check.Timeout = time.Minute // No machine is so slow.
	}
	if err := newProber().probe(t.Context(), &target{"a", at, check}); err != nil {
		return err.Error()
	}
	return ""
}

// hanging is how long a check takes that is not answered.
const hanging = 50 * time.Millisecond

// TestGet: a status from 200 to 399 is healthy. Redirects are not followed, and what follows the
// status does not matter.
func TestGet(t *testing.T) {
	var asked atomic.Value
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Clone(r.Context()))
		switch path := r.URL.Path; path {
		case "/redirect":
			http.Redirect(w, r, "/500", http.StatusFound)
		case "/endless":
			for w.Header().Set("Content-Type", "text/plain"); ; {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		case "/hang":
			<-r.Context().Done()
		case "/header":
			w.Header().Set("X-Large", strings.Repeat("x", 2*maxHeader))
		case "/abort":
			panic(http.ErrAbortHandler)
		case "/early":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusOK)
		default:
			var status int
			if _, err := fmt.Sscanf(path, "/%d", &status); err == nil {
				w.WriteHeader(status)
			}
		}
	})
	plain, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plain.Close()
	defer secure.Close()
	for path, want := range map[string]string{
		"/": "", "/200": "", "/204": "", "/redirect": "", "/304": "", "/399": "", "/endless": "", "/early": "",
		"/400": "status 400", "/404": "status 404", "/500": "status 500", "/503": "status 503",
		"/header": "the answer can't be read", "/abort": "the connection was closed without an answer",
	} {
		if want != "" {
			want = "GET " + path + ": " + want
		}
		for server, withTLS := range map[*httptest.Server]bool{plain: false, secure: true} {
			if got := ask(t, addressOf(server), source.HealthCheck{Target: path, TLS: withTLS}); got != want {
				t.Errorf("%s, TLS %v: got %q, want %q", path, withTLS, got, want)
			}
		}
	}
	if got := ask(t, addressOf(plain), source.HealthCheck{Target: "/hang", Timeout: hanging}); got != "GET /hang: no answer within 50ms" {
		t.Errorf("got %q", got)
	}
	check := source.HealthCheck{Target: "//b.test/a%2Fb%20c?d=e&f", Host: "a.test:81"}
	if got := ask(t, addressOf(plain), check); got != "" {
		t.Error(got)
	}
	r := asked.Load().(*http.Request)
	if r.RequestURI != check.Target || r.Host != check.Host || r.UserAgent() != agent || len(r.Header) != 2 || r.Header.Get("Connection") != "close" || r.Method != http.MethodGet {
		t.Errorf("%s %s, Host %s, %v", r.Method, r.RequestURI, r.Host, r.Header)
	}
	if ask(t, addressOf(secure), source.HealthCheck{Target: "/", TLS: true, Host: "a.test"}); asked.Load().(*http.Request).TLS.ServerName != "a.test" {
		t.Error("the name for TLS is not the host")
	}
	if ask(t, addressOf(plain), source.HealthCheck{Target: "/"}); asked.Load().(*http.Request).Host != plain.Listener.Addr().String() {
		t.Errorf("Host %s is not the endpoint", asked.Load().(*http.Request).Host)
	}
	if got := ask(t, netip.MustParseAddrPort("127.0.0.1:1"), source.HealthCheck{Target: "/", Port: addressOf(plain).Port()}); got != "" {
		t.Errorf("at the other port: %s", got)
	}
}

// TestNoHTTP: what does not speak the protocol is unhealthy, and no check takes longer than its
// timeout.
func TestNoHTTP(t *testing.T) {
	listen := func(serve func(*net.TCPConn)) netip.AddrPort { return porttest.Serve(t, "127.0.0.1:0", serve) }
	closed := listen(func(*net.TCPConn) {})
	refusing := func() netip.AddrPort {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return netip.MustParseAddrPort(l.Addr().String())
	}()
	silent := listen(func(c *net.TCPConn) { _, _ = io.Copy(io.Discard, c) })
	dripping := listen(func(c *net.TCPConn) {
		for _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n"); err == nil; time.Sleep(time.Millisecond) {
			_, err = io.WriteString(c, "X: y\r\n")
		}
	})
	garbage := listen(func(c *net.TCPConn) {
		_, _ = io.WriteString(c, strings.Repeat("garbage ", 100)+"\r\n\r\n")
		_, _ = io.Copy(io.Discard, c)
	})
	type protocol struct{ grpc, tls bool }
	for at, wants := range map[netip.AddrPort][]string{
		closed:   {"the connection was closed without an answer", "the answer can't be read"},
		refusing: {"connection refused"},
		silent:   {"no answer within 50ms"},
		// The header becomes too large at some time, unless the machine is slow.
		dripping: {"no answer within 50ms", "the answer can't be read", "the TLS handshake failed"},
		garbage:  {"the answer can't be read", "the TLS handshake failed", "the connection was closed without an answer"},
	} {
		for _, p := range []protocol{{false, false}, {false, true}, {true, false}, {true, true}} {
			check := source.HealthCheck{GRPC: p.grpc, TLS: p.tls, Target: "/x"}
			if at == silent || at == dripping {
				check.Timeout = hanging
			}
			got := ask(t, at, check)
			_, what, _ := strings.Cut(got, ": ")
			found := false
			for _, want := range wants {
				found = found || what == want
			}
			if !found {
				t.Errorf("%+v: got %q, want one of %q", p, got, wants)
			}
		}
	}
}

// TestGRPC: only SERVING is healthy.
func TestGRPC(t *testing.T) {
	answerOf := func(is status) []byte {
		message := protowire.AppendVarint(protowire.AppendTag(nil, statusField, protowire.VarintType), uint64(is))
		return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	}
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path != method || r.ProtoMajor != 2 || r.Header.Get("Content-Type") != "application/grpc" || r.Header.Get("Te") != "trailers" || len(body) < framePrefix {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		service := ""
		if message := body[framePrefix:]; len(message) > 0 {
			_, _, n := protowire.ConsumeTag(message)
			service, _ = protowire.ConsumeString(message[n:])
		}
		w.Header().Set("Content-Type", "application/grpc")
		code := "0"
		switch service {
		case "":
			_, _ = w.Write(answerOf(serving))
		case "down":
			_, _ = w.Write(answerOf(2))
		case "new":
			_, _ = w.Write(answerOf(9))
		case "cut":
			_, _ = w.Write(answerOf(serving)[:framePrefix+1])
		case "failing":
			_, _ = w.Write(answerOf(serving))
			code = "14"
		case "none":
			code = "12"
		case "status":
			w.WriteHeader(http.StatusBadGateway)
		case "hang":
			<-r.Context().Done()
		default:
			w.Header().Set("Grpc-Status", "5")
			return
		}
		w.Header().Set(http.TrailerPrefix+"Grpc-Status", code)
	})
	plain, secure := httptest.NewUnstartedServer(answer), httptest.NewUnstartedServer(answer)
	plain.Config.Protocols = &http.Protocols{}
	plain.Config.Protocols.SetUnencryptedHTTP2(true)
	plain.Start()
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer plain.Close()
	defer secure.Close()
	for service, want := range map[string]string{
		"": "", "down": "NOT_SERVING", "new": "9", "failing": "grpc-status is not 0", "cut": "the answer is not one of the health service",
		"none":    "the server has no health service (grpc-status 12)",
		"unknown": "the server does not know the service (grpc-status 5)",
		"status":  "status 502",
	} {
		if want != "" {
			want = "gRPC health of " + service + ": " + want
		}
		for server, withTLS := range map[*httptest.Server]bool{plain: false, secure: true} {
			if got := ask(t, addressOf(server), source.HealthCheck{GRPC: true, Target: service, TLS: withTLS, Host: "a.test"}); got != want {
				t.Errorf("%q, TLS %v: got %q, want %q", service, withTLS, got, want)
			}
		}
	}
	if got := ask(t, addressOf(plain), source.HealthCheck{GRPC: true, Target: "hang", Timeout: hanging}); got != "gRPC health of hang: no answer within 50ms" {
		t.Errorf("got %q", got)
	}
}

// FuzzReadAnswer: of all that an endpoint may answer, only a whole answer with the status SERVING
// is read as one.
func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 2, 8, 1})
	f.Add([]byte{0, 0, 0, 0, 2, 8, 2})
	f.Add([]byte{0, 0, 0, 0, 4, 8, 2, 8, 1})
	f.Add([]byte{1, 0, 0, 0, 2, 8, 1})
	f.Add([]byte{0, 255, 255, 255, 255, 8, 1})
	f.Add([]byte{0, 0, 0, 0, 5, 18, 1, 65, 8, 1})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		is, err := readAnswer(frame)
		if err != nil || is != serving {
			return
		}
		// The answer that servers send is the shortest one.
		if len(frame) < 7 || frame[0] != 0 || int(binary.BigEndian.Uint32(frame[1:])) != len(frame)-framePrefix {
			t.Errorf("%v is read as %v", frame, is)
		}
	})
}
