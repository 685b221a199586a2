package admission

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/test/pkitest"
)

// TestCertificateOfFunction: each connection gets the certificate that a function returns
// then.
func TestCertificateOfFunction(t *testing.T) {
	authority := pkitest.New(t)
	var shown atomic.Pointer[tls.Certificate]
	server, err := Listen(Settings{
		Address: "127.0.0.1:0", Registry: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if c := shown.Load(); c != nil {
				return c, nil
			}
			return nil, errors.New("none yet")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve() }()
	t.Cleanup(func() {
		if err := errors.Join(server.Close(context.Background()), <-ended); err != nil {
			t.Error(err)
		}
	})
	if _, err := tls.Dial("tcp", server.Address().String(), &tls.Config{InsecureSkipVerify: true}); err == nil {
		t.Error("a connection without a certificate")
	}
	for range 2 {
		pair := authority.Issue("webhook.test")
		next, err := tls.X509KeyPair([]byte(pair.Certificate), []byte(pair.Key))
		if err != nil {
			t.Fatal(err)
		}
		shown.Store(&next)
		connection, err := tls.Dial("tcp", server.Address().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := connection.ConnectionState().PeerCertificates[0]; !got.Equal(pair.Leaf) {
			t.Error("another certificate is served")
		}
		connection.Close()
	}
}
