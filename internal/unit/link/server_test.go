package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestConnections: who gets units, and who gets a certificate, by the certificate of the connection.
func TestConnections(t *testing.T) {
	c := start(t, nil)
	other := newAuthority(t)
	own := Identity{"shop", "edge-1", "shop/edge"}
	for name, k := range map[string]struct {
		shown           *tls.Certificate
		units, renewals string
	}{
		"an edge":                {signed(t, c.authority, own, time.Hour), "", ""},
		"none":                   {nil, "no certificate of an edge", "there is no token"},
		"of another authority":   {signed(t, other, own, time.Hour), "unknown certificate authority", "unknown certificate authority"},
		"expired":                {signed(t, c.authority, own, -time.Minute), "expired certificate", "expired certificate"},
		"that of the control":    {c.trust.Load().Certificate, "bad certificate", "bad certificate"},
		"the authority's itself": {&tls.Certificate{Certificate: [][]byte{c.authority.Certificate.Raw}, PrivateKey: c.authority.key, Leaf: c.authority.Certificate}, "0 URIs", "0 URIs"},
	} {
		over := c.shows(k.shown)
		i, _, err := units(t.Context(), over)
		if !says(err, k.units) || err == nil && i != (Identity{"shop", "edge-1", ""}) {
			t.Errorf("%s: units for %v, %v", name, i, err)
		}
		text, _, err := enroll(t.Context(), over, "", requestOf(t, greedy(t), newKey(t)))
		if !says(err, k.renewals) {
			t.Errorf("%s: renewal: %v", name, err)
		}
		if err != nil {
			continue
		}
		list, err := ParseCertificates(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := IdentityOf(list[0]); err != nil || got != own {
			t.Errorf("%s: after its renewal, it is %v, %v", name, got, err)
		}
	}
}

func says(err error, want string) bool {
	if want == "" {
		return err == nil
	}
	return err != nil && strings.Contains(err.Error(), want)
}

// TestOldTLS: TLS 1.2 is refused.
func TestOldTLS(t *testing.T) {
	c := start(t, nil)
	for version, want := range map[uint16]string{tls.VersionTLS12: "protocol version", tls.VersionTLS13: ""} {
		connection, err := tls.Dial("tcp", c.address, &tls.Config{
			MinVersion: tls.VersionTLS12, MaxVersion: version, RootCAs: Pool(c.authority.Certificate), ServerName: ServerName, NextProtos: []string{alpn},
		})
		if !says(err, want) {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil {
			connection.Close()
		}
	}
}

// TestStrangers: who has no certificate gets nothing but the enrollment, with small messages.
func TestStrangers(t *testing.T) {
	c := start(t, nil)
	over := c.shows(nil)
	good := requestOf(t, &x509.CertificateRequest{}, newKey(t))
	for name, k := range map[string]struct {
		token   string
		request []byte
		code    codes.Code
		err     string
	}{
		"good":             {"edge-1", good, codes.OK, ""},
		"bad token":        {"edge-3", good, codes.PermissionDenied, "the token is of no edge"},
		"long token":       {strings.Repeat("a", maxToken+1), good, codes.InvalidArgument, "the token has more than"},
		"long request":     {"edge-1", make([]byte, MaxRequest+1), codes.InvalidArgument, "signing request has more than"},
		"bad request":      {"edge-1", []byte("x"), codes.InvalidArgument, "PEM block"},
		"too long for all": {strings.Repeat("a", maxEnroll), good, codes.ResourceExhausted, "larger than max"},
		"nothing":          {"", nil, codes.InvalidArgument, "PEM block"},
	} {
		_, _, err := enroll(t.Context(), over, k.token, k.request)
		if status.Code(err) != k.code || !says(err, k.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, method := range []string{watchMethod, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"} {
		if err := over.Invoke(t.Context(), method, &structpb.Struct{}, &structpb.Struct{}); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TestReviews: so many tokens are reviewed at once, and one that is refused keeps its place for a while.
// Who has a certificate needs none.
func TestReviews(t *testing.T) {
	var running, most atomic.Int64
	release := make(chan struct{})
	c := start(t, func(s *ServerSettings) {
		s.Review = func(ctx context.Context, token string) (Identity, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			<-release
			return reviewed(ctx, token)
		}
	})
	request := requestOf(t, &x509.CertificateRequest{}, newKey(t))
	var asking sync.WaitGroup
	for n := range 3 * maxReviews {
		over := c.showsFrom(fmt.Sprintf("127.0.0.%d", 1+n%3), nil)
		asking.Go(func() {
			if _, _, err := enroll(t.Context(), over, "edge-1", request); err != nil {
				t.Error(err)
			}
		})
	}
	until(t, "so many are reviewed", func() bool { return running.Load() == maxReviews })
	if _, _, err := enroll(t.Context(), c.shows(signed(t, c.authority, Identity{"", "edge-9", ""}, time.Hour)), "", request); err != nil {
		t.Errorf("a renewal waits: %v", err)
	}
	close(release)
	asking.Wait()
	if got := most.Load(); got != maxReviews {
		t.Errorf("%d were reviewed at once", got)
	}
}

func TestRefusedKeepsItsPlace(t *testing.T) {
	a := newAuthority(t)
	e := newEnroller(ServerSettings{Review: reviewed, Log: start(t, nil).Server.log}, EdgeValidity)
	e.refusal = time.Hour
	trust := trustOf(t, a)
	e.Source = func() (*Trust, error) { return trust, nil }
	from := func(last byte) context.Context {
		return peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, last)}})
	}
	for n := range byte(maxReviews) {
		if _, err := e.review(from(n), "edge-3"); status.Code(err) != codes.PermissionDenied {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(from(maxReviews), time.Millisecond)
	defer cancel()
	if _, err := e.review(ctx, "edge-1"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

// TestTokenIsNotShown: neither in the log nor in an answer.
func TestTokenIsNotShown(t *testing.T) {
	const token = "a.secret.token"
	for _, result := range []error{errors.New("bad: " + token), Refusal{"bad: " + token}} {
		c := start(t, func(s *ServerSettings) {
			s.Review = func(context.Context, string) (Identity, error) { return Identity{}, result }
		})
		_, _, err := enroll(t.Context(), c.shows(nil), token, requestOf(t, &x509.CertificateRequest{}, newKey(t)))
		if err == nil || strings.Contains(err.Error(), token) || strings.Contains(c.log.String(), token) || !strings.Contains(c.log.String(), "bad: …") {
			t.Errorf("the answer is %v, the log %s", err, c.log)
		}
	}
}

// TestRenew: the control may refuse an edge that it has taken before.
func TestRenew(t *testing.T) {
	c := start(t, func(s *ServerSettings) {
		s.Renew = func(i Identity) error { return Refusal{"no edge may be of the group " + i.Group} }
	})
	over := c.shows(signed(t, c.authority, Identity{"shop", "edge-1", ""}, time.Hour))
	_, _, err := enroll(t.Context(), over, "", requestOf(t, &x509.CertificateRequest{}, newKey(t)))
	if status.Code(err) != codes.PermissionDenied || !says(err, "of the group shop") {
		t.Errorf("got %v", err)
	}
}

// TestStreamEndsWithCertificate: also if it waits for a message.
func TestStreamEndsWithCertificate(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		c := start(t, nil)
		c.stuck, c.grace = stuck, 500*time.Millisecond
		// Certificates end at full seconds.
		own := signed(t, c.authority, Identity{"", "edge-1", ""}, 2*time.Second)
		over := c.shows(own)
		_, end, err := units(t.Context(), over)
		if err != nil {
			t.Fatal(err)
		}
		err = end()
		if stuck && status.Code(err) != codes.Unavailable || !stuck && status.Code(err) != codes.Unauthenticated {
			t.Errorf("stuck %t: the stream ended with %v", stuck, err)
		}
		if late := time.Since(own.Leaf.NotAfter); late < 0 || late > 10*time.Second {
			t.Errorf("stuck %t: it ended %s after the certificate", stuck, late)
		}
		if _, _, err := units(t.Context(), over); err == nil {
			t.Error("there is another stream")
		}
		if _, _, err := enroll(t.Context(), over, "", requestOf(t, &x509.CertificateRequest{}, newKey(t))); err == nil {
			t.Error("the expired certificate is renewed")
		}
	}
}

// TestOpenConnection: what is trusted no more gets nothing over a connection that was opened before.
func TestOpenConnection(t *testing.T) {
	c := start(t, func(s *ServerSettings) { s.recheck = time.Millisecond })
	over := c.shows(signed(t, c.authority, Identity{"", "edge-1", ""}, time.Hour))
	_, end, err := units(t.Context(), over)
	if err != nil {
		t.Fatal(err)
	}
	c.trust.Store(trustOf(t, newAuthority(t)))
	if err := end(); status.Code(err) != codes.Unauthenticated || !says(err, "not trusted") {
		t.Errorf("the open stream: %v", err)
	}
	request := requestOf(t, &x509.CertificateRequest{}, newKey(t))
	if _, _, err := units(t.Context(), over); status.Code(err) != codes.Unauthenticated {
		t.Errorf("units: %v", err)
	}
	if _, _, err := enroll(t.Context(), over, "", request); status.Code(err) != codes.Unauthenticated {
		t.Errorf("renewal: %v", err)
	}
}

// TestNoAuthority: a control with certificates of others signs none, and one that has nothing yet takes no connection.
func TestNoAuthority(t *testing.T) {
	c := start(t, nil)
	trust := *c.trust.Load()
	trust.Signer = nil
	c.trust.Store(&trust)
	if _, _, err := enroll(t.Context(), c.shows(nil), "edge-1", requestOf(t, &x509.CertificateRequest{}, newKey(t))); !says(err, "the edge needs --control-certificate") {
		t.Errorf("got %v", err)
	}
	none := start(t, func(s *ServerSettings) { s.Source = func() (*Trust, error) { return nil, errors.New("none yet") } })
	if _, _, err := units(t.Context(), none.shows(nil)); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
}

// TestOnlyOneStream: many requests of one stranger do not run at once.
func TestOnlyOneStream(t *testing.T) {
	reviewing, release := make(chan struct{}, 10), make(chan struct{})
	c := start(t, func(s *ServerSettings) {
		s.Review = func(ctx context.Context, token string) (Identity, error) {
			reviewing <- struct{}{}
			<-release
			return reviewed(ctx, token)
		}
	})
	over := c.shows(nil)
	var asking sync.WaitGroup
	for range 2 {
		asking.Go(func() {
			_, _, err := enroll(t.Context(), over, "edge-1", requestOf(t, &x509.CertificateRequest{}, newKey(t)))
			if err != nil {
				t.Error(err)
			}
		})
	}
	<-reviewing
	if len(reviewing) > 0 {
		t.Error("there are two streams")
	}
	close(release)
	asking.Wait()
}

// A failing listener has no files for a while.
type failing struct {
	net.Listener
	errors []error
}

func (f *failing) Accept() (net.Conn, error) {
	if len(f.errors) > 0 {
		err := f.errors[0]
		f.errors = f.errors[1:]
		return nil, err
	}
	return f.Listener.Accept()
}

// TestAcceptFails: the server outlives errors of its listener, and ends with it.
func TestAcceptFails(t *testing.T) {
	c := start(t, nil)
	server := NewServer(ServerSettings{Source: func() (*Trust, error) { return c.trust.Load(), nil }, Review: reviewed, Log: c.Server.log})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.address = listener.Addr().String()
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(&failing{listener, []error{&net.OpError{Op: "accept", Err: syscall.EMFILE}, syscall.ENFILE, syscall.ENOBUFS}})
	}()
	if _, _, err := enroll(t.Context(), c.shows(nil), "edge-1", requestOf(t, &x509.CertificateRequest{}, newKey(t))); err != nil {
		t.Error(err)
	}
	if got := strings.Count(c.log.String(), "cannot accept a connection"); got != 3 {
		t.Errorf("%d errors are in the log", got)
	}
	listener.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("it ended with %v", err)
	}
}

// An edge has so many streams of a kind over all of its connections, and takes none from others.
func TestStreamsOfAnEdge(t *testing.T) {
	for name, o := range map[string]struct {
		review func(context.Context, string) (Identity, error)
		most   int
	}{
		"with a token": {reviewed, maxOfEdge},
		"with files":   {nil, maxOfAddress},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t, func(s *ServerSettings) { s.Review = o.review })
			one := signed(t, c.authority, Identity{Group: "shop", Name: "edge-1"}, time.Hour)
			over := []*grpc.ClientConn{c.shows(one), c.shows(one)}
			ctx, end := context.WithCancel(t.Context())
			for i := range o.most {
				if _, _, err := units(ctx, over[i%2]); err != nil {
					t.Fatal(err)
				}
			}
			for _, connection := range over {
				if _, _, err := units(ctx, connection); status.Code(err) != codes.ResourceExhausted {
					t.Errorf("one more: %v", err)
				}
			}
			for _, other := range []Identity{{Group: "shop", Name: "edge-2"}, {Name: "edge-1"}} {
				if _, _, err := units(ctx, c.shows(signed(t, c.authority, other, time.Hour))); err != nil {
					t.Errorf("%v: %v", other, err)
				}
			}
			end()
			until(t, "there is room again", func() bool {
				_, _, err := units(t.Context(), over[0])
				return err == nil
			})
		})
	}
}
