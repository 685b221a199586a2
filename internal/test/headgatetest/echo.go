package headgatetest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// echoMark is a header by which an echo backend's answers are known.
const echoMark = "X-Echo"

// An Echo is what an echo backend saw of a request.
type Echo struct {
	Backend    string
	Method     string
	Target     string
	Proto      string
	Host       string
	Header     http.Header
	BodyLength int64
	// BodySum is the SHA-256 of the body in hexadecimal digits.
	BodySum string
	// Chunked is set if the body came without a length.
	Chunked bool
}

// StartEcho runs a backend that answers with what it saw, and returns its
// address.
func StartEcho(t testing.TB, name string) string {
	t.Helper()
	return StartBackend(t, Echoes(name))
}

// StartEchoAt runs such a backend at an address with a port, 0 for a free one.
func StartEchoAt(t testing.TB, name, at string) string {
	t.Helper()
	listener, err := net.Listen("tcp", at)
	must(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: Echoes(name)}}
	server.Start()
	t.Cleanup(server.Close)
	return listener.Addr().String()
}

// Echoes is the handler of an echo backend.
func Echoes(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		n, err := io.Copy(sum, r.Body)
		if err != nil {
			return
		}
		w.Header().Set(echoMark, name)
		w.Header().Set("Content-Type", "application/json")
		// What can't be written the client will miss.
		_ = json.NewEncoder(w).Encode(Echo{
			Backend: name, Method: r.Method, Target: r.RequestURI, Proto: r.Proto, Host: r.Host, Header: r.Header,
			BodyLength: n, BodySum: hex.EncodeToString(sum.Sum(nil)), Chunked: len(r.TransferEncoding) > 0,
		})
	})
}

// StartBackend runs a backend on a loopback address and returns that.
func StartBackend(t testing.TB, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.Listener.Addr().(*net.TCPAddr).AddrPort().String()
}
