package stream_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/stream"
	"github.com/headgate/headgate/internal/test/porttest"
)

const passedBackend = "shop/web/https"

// A passthrough is a TLS with an NGINX that answers with what it gets.
type passthrough struct {
	*server
	*stream.TLS
	at string
}

// startTLS has the name a.test passed through to endpoints.
func startTLS(t *testing.T, settings model.TLSPassthrough, endpoints ...netip.AddrPort) *passthrough {
	t.Helper()
	s := start(t)
	p := &passthrough{server: s, at: fmt.Sprintf("127.0.0.1:%d", s.port)}
	socket := filepath.Join(t.TempDir(), "tls.sock")
	nginx, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nginx.Close() })
	go echoAll(nginx, "nginx ")
	p.TLS = s.NewTLS(s.port, socket)
	p.SetHost("a.test", passedBackend)
	p.SetBackend(passedBackend, endpoints)
	p.TLS.Configure(settings)
	if err := p.Listen([]netip.AddrPort{netip.MustParseAddrPort(p.at)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p.TLS.Shutdown(ctx)
	})
	return p
}

// echoAll answers connections with a mark and with what they send.
func echoAll(l net.Listener, mark string) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if _, err := io.WriteString(c, mark); err == nil {
				_, _ = io.Copy(c, c) // Until the client ends it.
			}
		}()
	}
}

func tcpEcho(t *testing.T, mark string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go echoAll(l, mark)
	return netip.MustParseAddrPort(l.Addr().String())
}

func (p *passthrough) dial() *net.TCPConn {
	p.t.Helper()
	c, err := net.Dial("tcp", p.at)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// helloFor is what a client of Go sends first.
func helloFor(name string) []byte {
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		defer client.Close()
		_ = tls.Client(client, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
	}()
	b := make([]byte, 16<<10)
	n, err := server.Read(b)
	if err != nil {
		panic(err)
	}
	return b[:n]
}

// answer is all that comes back when pieces are sent and ended.
func (p *passthrough) answer(pieces ...[]byte) string {
	p.t.Helper()
	c := p.dial()
	for _, piece := range pieces {
		if _, err := c.Write(piece); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := c.CloseWrite(); err != nil && !errors.Is(err, syscall.ENOTCONN) { // It was reset.
		p.t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) { // of bytes that were not read
		p.t.Fatal(err)
	}
	return string(all)
}

func TestTLSGoesByName(t *testing.T) {
	p := startTLS(t, model.TLSPassthrough{}, tcpEcho(t, "a "))
	p.SetHost("*.w.test", passedBackend)
	for _, name := range []string{"*.w.test", "own.w.test"} {
		p.SetName(name, true)
	}
	header := fmt.Sprintf("PROXY TCP4 127.0.0.1 127.0.0.1 PORT %d\r\n", p.port)
	bytewise := make([][]byte, 0, 2000)
	for _, b := range helloFor("a.test") {
		bytewise = append(bytewise, []byte{b})
	}
	for _, c := range []struct {
		what   string
		to     string
		pieces [][]byte
	}{
		{"a host", "a ", [][]byte{helloFor("a.test")}},
		{"a host with early data", "a ", [][]byte{helloFor("a.test"), []byte("\x17\x03\x03\x00\x01x")}},
		{"bytes one by one", "a ", bytewise},
		{"another name", "nginx ", [][]byte{helloFor("b.test")}},
		{"a name below", "nginx ", [][]byte{helloFor("www.a.test")}},
		{"a name below a wildcard", "a ", [][]byte{helloFor("x.w.test")}},
		{"two labels below a wildcard", "nginx ", [][]byte{helloFor("x.y.w.test")}},
		{"a name that an Ingress has", "nginx ", [][]byte{helloFor("own.w.test")}},
		{"the wildcard itself", "nginx ", [][]byte{helloFor("w.test")}},
		{"no name", "nginx ", [][]byte{helloFor("")}},
		{"http", "nginx ", [][]byte{[]byte("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")}},
		{"much that is not TLS", "nginx ", [][]byte{[]byte(strings.Repeat("x", 1<<20))}},
		{"an endless ClientHello", "nginx ", [][]byte{append([]byte("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc"), make([]byte, 100000)...)}},
	} {
		var sent strings.Builder
		for _, piece := range c.pieces {
			sent.Write(piece)
		}
		got, want := p.answer(c.pieces...), c.to+sent.String()
		if c.to == "nginx " {
			want = c.to + header + sent.String()
			if line := strings.Fields(got); len(line) > 5 {
				want = strings.Replace(want, "PORT", line[5], 1)
			}
		}
		if got != want {
			t.Errorf("%s: the answer has %d bytes and begins with %.60q, want %d and %.60q", c.what, len(got), got, len(want), want)
		}
	}
}

// TestTLSWithoutName: connections without a name go to the host without one, if that is passed through; other
// bytes than TLS go to NGINX.
func TestTLSWithoutName(t *testing.T) {
	p := startTLS(t, model.TLSPassthrough{}, tcpEcho(t, "a "))
	p.SetHost(model.DefaultHost, passedBackend)
	for what, c := range map[string]struct {
		first []byte
		to    string
	}{
		"no name": {helloFor(""), "a "}, "another name": {helloFor("b.test"), "nginx "}, "http": {[]byte("GET / HTTP/1.1\r\n\r\n"), "nginx "},
	} {
		if got := p.answer(c.first); !strings.HasPrefix(got, c.to) {
			t.Errorf("%s: the answer begins with %.60q, want %q", what, got, c.to)
		}
	}
}

// A connection that does not say its name ends, and holds up no other.
func TestTLSOfSilentClients(t *testing.T) {
	p := startTLS(t, model.TLSPassthrough{}, tcpEcho(t, "a "))
	silent, half := p.dial(), p.dial()
	if _, err := half.Write(helloFor("a.test")[:100]); err != nil {
		t.Fatal(err)
	}
	if got := p.answer(helloFor("a.test")); !strings.HasPrefix(got, "a ") {
		t.Errorf("the answer is %.20q", got)
	}
	// At the end they are not waited for.
	p.TLS.Shutdown(context.Background())
	for _, c := range []net.Conn{silent, half} {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("it is not closed")
		}
	}
}

// Of too many that say nothing, the oldest is closed.
func TestTLSOfManySilentClients(t *testing.T) {
	p := startTLS(t, model.TLSPassthrough{}, tcpEcho(t, "a "))
	oldest := p.dial()
	p.wait("the oldest waits", func() bool { return p.open("https") == 1 })
	for range stream.MaxWaiting {
		p.dial()
	}
	if _, err := oldest.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the oldest connection: %v", err)
	}
	if got := p.answer(helloFor("a.test")); !strings.HasPrefix(got, "a ") {
		t.Errorf("the answer is %.20q", got)
	}
}

func (p *passthrough) wait(what string, holds func() bool) {
	p.t.Helper()
	for end := time.Now().Add(timeout); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatal("in vain: " + what)
		}
	}
}

// open is how many connections there are, by the protocol of the metrics.
func (p *passthrough) open(protocol string) int {
	p.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(p.Server)
	families, err := registry.Gather()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "headgate_stream_connections" && m.GetLabel()[1].GetValue() == protocol {
				return int(m.GetGauge().GetValue())
			}
		}
	}
	return -1
}

// The endpoints and the hosts change for new connections, and others go on.
func TestTLSFollowsChanges(t *testing.T) {
	p := startTLS(t, model.TLSPassthrough{}, tcpEcho(t, "one "))
	old := p.dial()
	greet := func(c net.Conn, want string) {
		t.Helper()
		if _, err := c.Write(helloFor("a.test")); err != nil {
			t.Fatal(err)
		}
		if got, err := bufio.NewReader(io.LimitReader(c, int64(len(want)))).ReadString(' '); got != want || err != nil {
			t.Errorf("the answer is %q, %v, want %q", got, err, want)
		}
	}
	greet(old, "one ")
	p.SetBackend(passedBackend, []netip.AddrPort{tcpEcho(t, "two ")})
	greet(p.dial(), "two ")
	dead := netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", porttest.Free(t)))
	p.SetBackend(passedBackend, []netip.AddrPort{dead, tcpEcho(t, "three ")})
	for range 4 {
		greet(p.dial(), "three ")
	}
	p.SetBackend("shop/other/https", []netip.AddrPort{tcpEcho(t, "other ")})
	p.SetHost("a.test", "shop/other/https")
	greet(p.dial(), "other ")
	p.SetBackend("shop/other/https", nil)
	if got := p.answer(helloFor("a.test")); got != "" {
		t.Errorf("without endpoints, the answer is %.20q", got)
	}
	p.SetHost("b.test", "shop/other/https") // so that connections still come here
	p.SetHost("a.test", "")
	greet(p.dial(), "nginx ")
	if _, err := old.Write([]byte("x")); err != nil {
		t.Error(err)
	}
}

// The header of a load balancer says who the client is, if it is believed.
func TestTLSBehindLoadBalancer(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	p := startTLS(t, model.TLSPassthrough{ProxyIn: true, Trusted: trusted}, tcpEcho(t, "a "))
	header, hello := "PROXY TCP4 192.0.2.7 192.0.2.1 4000 443\r\n", helloFor("b.test")
	if got := p.answer([]byte(header), hello); got != "nginx "+header+string(hello) {
		t.Errorf("NGINX gets %.80q", got)
	}
	v2 := append([]byte("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\xc0\x00\x02\x01\x0f\xa0\x01\xbb"), hello...)
	if got := p.answer(v2); got != "nginx "+header+string(hello) {
		t.Errorf("with version 2, NGINX gets %.80q", got)
	}
	if got := p.answer([]byte(header), helloFor("a.test")); !strings.HasPrefix(got, "a \x16") || strings.Contains(got, "PROXY") {
		t.Errorf("the endpoint gets %.80q", got)
	}
	if got := p.answer(hello); got != "" {
		t.Errorf("without a header, the answer is %.80q", got)
	}
	const line = "level=WARN msg=\"a connection without a valid header of the PROXY protocol"
	if log := strings.Join(p.logged.list(), "\n"); strings.Count(log, line) != 1 || !strings.Contains(log, `more before"=0`) || !strings.Contains(log, "from=127.0.0.1:") {
		t.Errorf("without a header, the log is %s", log)
	}
	p.TLS.Configure(model.TLSPassthrough{ProxyIn: true})
	if got := p.answer([]byte(header), hello); !strings.HasPrefix(got, "nginx PROXY TCP4 127.0.0.1 ") {
		t.Errorf("a header that is not believed: NGINX gets %.80q", got)
	}
}

// Clients cannot fill the log, and connections without a byte are not in it.
func TestTLSWithoutHeaderLog(t *testing.T) {
	p := startTLS(t, model.TLSPassthrough{ProxyIn: true}, tcpEcho(t, "a "))
	if got := p.answer(); got != "" || len(p.logged.list()) != 0 {
		t.Errorf("a connection without a byte: the answer is %q, the log %s", got, strings.Join(p.logged.list(), "\n"))
	}
	const connections = 100
	begun := time.Now()
	for range connections {
		p.answer([]byte("GET / HTTP/1.1\r\n\r\n"))
	}
	lines := len(p.logged.list())
	if most := int(time.Since(begun)/time.Second) + 1; lines < 1 || lines > most {
		t.Errorf("%d connections log %d lines, want at most %d", connections, lines, most)
	}
	p.wait("a line says how many were left out", func() bool {
		p.answer([]byte("GET / HTTP/1.1\r\n\r\n"))
		left := regexp.MustCompile(`more before"=[1-9]`)
		return left.MatchString(strings.Join(p.logged.list(), "\n"))
	})
}

// A connection that is passed through lives until the limit of the end.
func TestTLSShutdown(t *testing.T) {
	p := startTLS(t, model.TLSPassthrough{}, tcpEcho(t, "a "))
	c := p.dial()
	if _, err := c.Write(helloFor("a.test")); err != nil {
		t.Fatal(err)
	}
	p.wait("it is passed through", func() bool { return p.open("tls") == 1 })
	ctx, cut := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.TLS.Shutdown(ctx)
	}()
	p.wait("the port is closed", func() bool {
		d, err := net.Dial("tcp", p.at)
		if err == nil {
			d.Close()
		}
		return err != nil
	})
	if _, err := io.ReadFull(c, make([]byte, 50)); err != nil {
		t.Errorf("the connection: %v", err)
	}
	select {
	case <-ended:
		t.Error("it ended with an open connection")
	default:
	}
	cut()
	<-ended
}

// TestTLSUnread: when the endpoint has ended a connection, a client that takes nothing of what is
// left does not keep it.
func TestTLSUnread(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = c.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
		_, _ = c.Write(make([]byte, 64<<20)) // More than all buffers have room for.
		_ = c.(*net.TCPConn).SetLinger(0)    // It is reset.
		c.Close()
	}()
	p := startTLS(t, model.TLSPassthrough{}, netip.MustParseAddrPort(l.Addr().String()))
	p.configure(func(s *model.StreamSettings) { s.Idle = 300 * time.Millisecond })
	_, err = p.dial().Write(helloFor("a.test"))
	must(t, err)
	p.wait("it is passed through", func() bool { return p.open("tls") == 1 })
	p.wait("it is cut", func() bool { return p.open("tls") == 0 })
}
