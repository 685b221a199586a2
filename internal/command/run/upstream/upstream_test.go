package upstream_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/command/run/upstream"
	"github.com/headgate/headgate/internal/controller/edge"
	"github.com/headgate/headgate/internal/controller/follower"
	"github.com/headgate/headgate/internal/controller/reports"
	"github.com/headgate/headgate/internal/nginx"
	"github.com/headgate/headgate/internal/nginx/rundir"
	"github.com/headgate/headgate/internal/observe/metrics"
	"github.com/headgate/headgate/internal/observe/tracker"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/unit/link"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/xds"
)

// A fixture is an edge, and what its controls are made of.
type fixture struct {
	t         *testing.T
	authority *link.Authority
	address   string
	log       headgatetest.Log
	*upstream.Upstream
}

// newFixture makes an edge whose NGINX is never started: nothing is published.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t}
	var err error
	f.authority, err = link.NewAuthority(time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	must(t, err)
	// The port is that of all controls, one after another.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	f.address = listener.Addr().String()
	must(t, listener.Close())

	root, err := os.MkdirTemp("", "hg-") // Names of sockets are short.
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(root) })
	dir, err := rundir.Open(root)
	must(t, err)
	t.Cleanup(func() { dir.Close() })
	log := slog.New(slog.NewTextHandler(&f.log, nil))
	m := metrics.New()
	follow := follower.New(edge.Settings{
		Process: nginx.New(nginx.Options{Dir: dir, Log: log}), RunDir: dir, Metrics: m,
		Families: metrics.NewFamilies(m.Registry, metrics.Identity{}, metrics.Build{}), Tracker: tracker.New(log, m.Findings), Log: log,
	}, func() {})
	f.Upstream, err = upstream.New(upstream.Settings{Follower: follow, Name: "edge-1", Log: log, Control: f.identity()})
	must(t, err)
	f.Reporter = &reports.Reporter{Interval: reports.Interval, Status: func(context.Context) reports.Status { return reports.Status{Release: "v1"} }}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- f.Run(ctx, func(ctx context.Context, _ func(context.Context, []source.Change)) error { <-ctx.Done(); return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		f.Close()
		if t.Failed() {
			t.Logf("the log:\n%s", f.log.String())
		}
	})
	return f
}

// identity is where the control is, and the certificate that the edge shows there.
func (f *fixture) identity() link.ClientSettings {
	f.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(f.t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	must(f.t, err)
	request, err := x509.ParseCertificateRequest(der)
	must(f.t, err)
	certificate, err := f.authority.Edge(request, link.Identity{Name: "edge-1"}, time.Now(), time.Hour)
	must(f.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(f.t, err)
	dir := f.t.TempDir()
	s := link.ClientSettings{
		Address: f.address, CAFile: filepath.Join(dir, "ca.crt"), CertificateFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"),
		Log: slog.New(slog.DiscardHandler),
	}
	for name, text := range map[string][]byte{
		s.CAFile: link.EncodeCertificates(f.authority.Certificate), s.CertificateFile: link.EncodeCertificates(certificate),
		s.KeyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	} {
		must(f.t, os.WriteFile(name, text, 0o600))
	}
	return s
}

// streams are not looked at.
type streams struct{}

func (streams) Connected(int64, string)           {}
func (streams) Gone(int64)                        {}
func (streams) Acknowledged(int64, uint64, error) {}

// control starts one that publishes nothing, until it is stopped.
func (f *fixture) control() (edges *reports.Edges, stop func()) {
	f.t.Helper()
	own, err := f.authority.Server(time.Now(), time.Hour)
	must(f.t, err)
	trust := &link.Trust{Certificate: own, Edges: link.Pool(f.authority.Certificate), Signer: f.authority, Bundle: link.EncodeCertificates(f.authority.Certificate)}
	server := link.NewServer(link.ServerSettings{
		Source: func() (*link.Trust, error) { return trust, nil }, MaxMessage: xds.MaxMessage, Log: slog.New(slog.DiscardHandler),
	})
	(&xds.Server{
		Store: publish.New(), Ready: func() bool { return true }, Streams: streams{},
		Identify: func(ctx context.Context) (xds.Edge, error) {
			who, err := link.Peer(ctx)
			return xds.Edge{Name: who.Name}, err
		},
	}).Register(server)
	edges = reports.NewEdges(func(ctx context.Context) (name, group string, err error) {
		who, err := link.Peer(ctx)
		return who.Name, who.Group, err
	})
	edges.Register(server)
	listener, err := net.Listen("tcp", f.address)
	must(f.t, err)
	go func() { _ = server.Serve(listener) }()
	f.t.Cleanup(server.Stop)
	return edges, server.Stop
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waits reports whether the check says that the control is waited for, and why.
func (f *fixture) waits() bool {
	err := f.Check(f.t.Context())
	return err != nil && strings.Contains(err.Error(), ": waiting for the control at "+f.address+": ") && !f.Connected()
}

// An edge connects again and again, reports to each control, and its check says what is waited for.
func TestControlComesAndGoes(t *testing.T) {
	f := newFixture(t)
	headgatetest.Eventually(t, "the check says what is waited for", f.waits)
	if err := f.Check(t.Context()); !strings.Contains(err.Error(), "connection refused") || !strings.HasPrefix(err.Error(), "the first load is not complete") {
		t.Errorf("the check does not say why: %v", err)
	}
	for range 2 {
		edges, stop := f.control()
		headgatetest.Eventually(t, "it is connected", f.Connected)
		headgatetest.Eventually(t, "it reports", func() bool {
			list := edges.List()
			return len(list) == 1 && list[0].Name == "edge-1" && list[0].Status.Release == "v1"
		})
		// NGINX still waits for what is published, and no more for the control.
		if err := f.Check(t.Context()); err == nil || strings.Contains(err.Error(), "waiting for the control") {
			t.Errorf("with a control: %v", err)
		}
		stop()
		headgatetest.Eventually(t, "the control is missed", f.waits)
	}
	if n := strings.Count(f.log.String(), "connected to the control"); n != 2 {
		t.Errorf("the log says %d times that it is connected", n)
	}
	// However often it is tried, the same reason is said once.
	if n := strings.Count(f.log.String(), "connection refused"); n > 4 {
		t.Errorf("the log has %d lines about a connection that is refused", n)
	}
}
