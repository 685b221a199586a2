package dataplane_test

import (
	"cmp"
	"context"
	"crypto/md5"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// balancer is the address of a load balancer, which is believed.
const balancer = "127.0.0.9"

// A network has the connections of callers.
type network struct {
	instance *headgatetest.Instance
	record   *record
	// certificates are those of callers, by their names.
	certificates map[string]tls.Certificate
	clients      map[origin]*http.Client
	sent         int
	// refused are the marks of requests that reached no backend.
	refused []string
}

// An origin is where requests come from, and how.
type origin struct {
	address, certificate, version string
}

// An asking is a request over a version of HTTP: "1.1", "1.1 with TLS", "2" or "3".
type asking struct {
	headgatetest.Request
	// at stands before the host.
	at, version string
	// balanced: it comes by a load balancer.
	balanced bool
}

func (a asking) String() string {
	return fmt.Sprintf("%s %s over HTTP/%s, balanced %v, with %v", cmp.Or(a.Method, "GET"), a.Path, a.version, a.balanced, a.Header)
}

// client is for requests from an address.
func (n *network) client(l origin) *http.Client {
	if n.clients[l] == nil {
		config := &tls.Config{InsecureSkipVerify: true}
		if c, ok := n.certificates[l.certificate]; ok {
			config.Certificates = []tls.Certificate{c}
		}
		n.clients[l] = &http.Client{
			Timeout: headgatetest.Timeout, Transport: n.transport(l, config),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return n.clients[l]
}

func (n *network) transport(l origin, config *tls.Config) http.RoundTripper {
	if l.version == "3" {
		return &http3.Transport{TLSClientConfig: config, DisableCompression: true, Dial: func(ctx context.Context, _ string, c *tls.Config, settings *quic.Config) (*quic.Conn, error) {
			return n.dialQUIC(ctx, l.address, c, settings)
		}}
	}
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(l.address)}}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(l.version != "2")
	protocols.SetHTTP2(l.version == "2")
	return &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			port := n.instance.HTTP
			if strings.HasSuffix(address, ":443") {
				port = n.instance.HTTPS
			}
			return dialer.DialContext(ctx, "tcp", headgatetest.Address(port))
		},
		TLSClientConfig: config, Protocols: protocols, DisableCompression: true,
	}
}

// dialQUIC connects from an address.
func (n *network) dialQUIC(ctx context.Context, address string, config *tls.Config, settings *quic.Config) (*quic.Conn, error) {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(address)})
	if err != nil {
		return nil, err
	}
	to, err := net.ResolveUDPAddr("udp", headgatetest.Address(n.instance.HTTPS))
	if err != nil {
		return nil, err
	}
	transport := &quic.Transport{Conn: socket}
	connection, err := transport.DialEarly(ctx, to, config, settings)
	if err != nil {
		socket.Close()
		return nil, err
	}
	go func() {
		<-connection.Context().Done()
		transport.Close()
		socket.Close()
	}()
	return connection, nil
}

// rest closes connections: each host has its own.
func (n *network) rest() {
	for _, client := range n.clients {
		client.CloseIdleConnections()
	}
}

// request is what a caller sends. It has a mark.
func (n *network) request(host string, a asking, c caller) headgatetest.Request {
	n.sent++
	send := a.Request
	send.Host, send.Scheme, send.Header = a.at+host, "https", c.headers()
	if a.version == "1.1" {
		send.Scheme = "http"
	}
	for name, values := range a.Header {
		send.Header[name] = values
	}
	if a.balanced {
		send.Header.Add("X-Forwarded-For", c.address)
	}
	send.Header.Set("X-Mark", fmt.Sprint(n.sent))
	send.Body = copied(a.Body)
	return send
}

// once sends a request and says what became of it.
func (n *network) once(host string, a asking, c caller, send headgatetest.Request) (outcome, error) {
	l := origin{c.address, c.certificate, a.version}
	if a.balanced {
		l.address = balancer
	}
	response, err := n.instance.Try(n.client(l), send)
	mark := send.Header.Get("X-Mark")
	got := outcome{
		backend: n.record.of(mark), status: response.Status,
		location:  strings.ReplaceAll(response.Header.Get("Location"), host, "HOST"),
		origin:    response.Header.Get("Access-Control-Allow-Origin"),
		challenge: response.Header.Get("WWW-Authenticate"),
	}
	if !got.reached() {
		n.refused = append(n.refused, mark)
	}
	return got, err
}

// ask has a caller ask a host, as often as it takes to be refused for that.
func (n *network) ask(t *testing.T, host string, a asking, c caller) (outcome, error) {
	t.Helper()
	if c.busy {
		defer n.hold(t, host, a, c)()
	}
	for tries := 1; ; tries++ {
		send := n.request(host, a, c)
		got, err := n.once(host, a, c, send)
		if nonce := nonceOf(got); err == nil && c.digest && nonce != "" {
			authorization := digestOf(nonce, cmp.Or(a.Method, "GET"), a.Path)
			send = n.request(host, a, c)
			send.Header.Set("Authorization", authorization)
			got, err = n.once(host, a, c, send)
		}
		if err != nil || !c.again || !got.reached() || tries == 10 {
			return got, err
		}
	}
}

// hold has a caller wait for an answer until the function is called that it returns.
func (n *network) hold(t *testing.T, host string, a asking, c caller) func() {
	t.Helper()
	c.busy = false
	a.Header = a.Header.Clone()
	if a.Header == nil {
		a.Header = http.Header{}
	}
	a.Header.Set("X-Hold", "yes")
	done := make(chan struct{})
	other := &network{instance: n.instance, record: n.record, certificates: n.certificates, clients: map[origin]*http.Client{}, sent: 1_000_000 + n.sent}
	go func() {
		defer close(done)
		// Whether it came to a backend is seen by what the backend says.
		other.ask(t, host, a, c)
		other.rest()
	}()
	select {
	case <-n.record.held:
		return func() {
			n.record.release <- struct{}{}
			<-done
		}
	case <-done:
		return func() {}
	}
}

var digestChallenge = regexp.MustCompile(`^Digest realm="here", qop="auth", algorithm=MD5, nonce="([0-9a-f]+)"`)

func nonceOf(o outcome) string {
	if found := digestChallenge.FindStringSubmatch(o.challenge); found != nil && o.status == http.StatusUnauthorized {
		return found[1]
	}
	return ""
}

// digestOf answers a challenge.
func digestOf(nonce, method, target string) string {
	hash := func(text string) string { return fmt.Sprintf("%x", md5.Sum([]byte(text))) }
	response := hash(hash("user:here:pass") + ":" + nonce + ":00000001:x:auth:" + hash(method+":"+target))
	return fmt.Sprintf(`Digest username="user", realm="here", nonce="%s", uri="%s", response="%s", qop=auth, nc=00000001, cnonce="x"`, nonce, target, response)
}
