package link

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync"
	"testing"
	"time"
)

// TestConnectionsOfOne: one Pod has few connections, and so many edges with one certificate have more.
func TestConnectionsOfOne(t *testing.T) {
	c := start(t, nil)
	connected := func(i Identity) bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, _, err := units(ctx, c.shows(signed(t, c.authority, i, time.Hour)))
		return err == nil
	}
	pod := Identity{"shop", "edge-1", "own/edge"}
	for range maxOfPod {
		if !connected(pod) {
			t.Fatal("a Pod has not all of its connections")
		}
	}
	if connected(pod) {
		t.Error("a Pod has more connections")
	}
	if !connected(Identity{"shop", "edge-2", "own/edge"}) {
		t.Error("another Pod has none")
	}
	for _, i := range []Identity{{"", "edge", ""}, {"", "edge", "own/edge"}} {
		for range maxOfPod + 1 {
			if !connected(i) {
				t.Errorf("edges that are %v have no more than a Pod", i)
			}
		}
	}
}

// TestClosedCountsNoMore: who has closed a connection can open another one.
func TestClosedCountsNoMore(t *testing.T) {
	c := start(t, nil)
	own := signed(t, c.authority, Identity{"shop", "edge-1", "own/edge"}, time.Hour)
	for range 3 * maxOfPod {
		over := c.shows(own)
		until(t, "there are units", func() bool {
			_, _, err := units(t.Context(), over)
			return err == nil
		})
		over.Close()
	}
	until(t, "nothing is known of it", func() bool {
		s := &c.toEdges.shares
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.of) == 0
	})
}

// TestStrangersOfOneAddress: one address can keep no other one from a certificate, nor an edge from its units: by connections
// at their handshake, and by those after it.
func TestStrangersOfOneAddress(t *testing.T) {
	c := start(t, nil)
	const other = "127.0.0.2"
	request := requestOf(t, &x509.CertificateRequest{}, newKey(t))
	open := func(network func() (net.Conn, error), number int) {
		t.Helper()
		for range number {
			connection, err := network()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { connection.Close() })
		}
	}
	open(func() (net.Conn, error) {
		return tls.Dial("tcp", c.address, &tls.Config{RootCAs: Pool(c.authority.Certificate), ServerName: ServerName, NextProtos: []string{alpn}})
	}, maxStrangersOf)
	until(t, "all are taken", func() bool { return c.toStrangers.live.Load() == maxStrangersOf })
	if _, _, err := enroll(t.Context(), c.shows(nil), "edge-1", request); err == nil {
		t.Error("one more is taken")
	}
	if _, _, err := enroll(t.Context(), c.showsFrom(other, nil), "edge-1", request); err != nil {
		t.Errorf("of another address: %v", err)
	}
	own := signed(t, c.authority, Identity{"shop", "edge-1", "own/edge"}, time.Hour)
	if _, _, err := units(t.Context(), c.shows(own)); err != nil {
		t.Errorf("an edge: %v", err)
	}
	open(func() (net.Conn, error) { return net.Dial("tcp", c.address) }, maxHandshakesOf)
	until(t, "all are at their handshake", func() bool { return len(c.handshakes) == maxHandshakesOf })
	if _, _, err := units(t.Context(), c.shows(own)); err == nil {
		t.Error("one more handshake is made")
	}
	if _, _, err := units(t.Context(), c.showsFrom(other, own)); err != nil {
		t.Errorf("an edge of another address: %v", err)
	}
}

// TestReviewsOfOneAddress: tokens of one address are reviewed beside those of others.
func TestReviewsOfOneAddress(t *testing.T) {
	reviewing, release := make(chan struct{}, 100), make(chan struct{})
	c := start(t, func(s *ServerSettings) {
		s.Review = func(ctx context.Context, token string) (Identity, error) {
			if token == "edge-1" {
				reviewing <- struct{}{}
				<-release
			}
			return reviewed(ctx, token)
		}
	})
	request := requestOf(t, &x509.CertificateRequest{}, newKey(t))
	var asking sync.WaitGroup
	for range 2 * maxReviews {
		over := c.shows(nil)
		asking.Go(func() {
			if _, _, err := enroll(t.Context(), over, "edge-1", request); err != nil {
				t.Error(err)
			}
		})
	}
	for range maxReviewsOf {
		<-reviewing
	}
	until(t, "the others wait", func() bool { return c.toStrangers.live.Load() == 2*maxReviews })
	if _, _, err := enroll(t.Context(), c.showsFrom("127.0.0.2", nil), "edge-2", request); err != nil {
		t.Errorf("of another address: %v", err)
	}
	if len(reviewing) > 0 {
		t.Error("more are reviewed")
	}
	close(release)
	asking.Wait()
}

func TestPlaceOf(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32", "2001:db8:1:2:3::4": "2001:db8:1:2::/64", "fe80::1": "fe80::/64",
	} {
		if got := placeOf(&net.TCPAddr{IP: net.ParseIP(address), Zone: ""}).String(); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
	if got := placeOf(&net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}).String(); got != "fe80::/64" {
		t.Errorf("with a zone: %s", got)
	}
	if placeOf(&net.UnixAddr{}).IsValid() {
		t.Error("a socket has a place")
	}
}
