package dataplane_test

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TLS passthrough: hosts come and go as data, all others are NGINX's with the address of
// the client, and connections live through the end of NGINX's and of the program.
func checkPassthrough(t *testing.T, binary string) {
	t.Parallel()
	plain := served("plain", headgatetest.StartEcho(t, "plain")) + headgatetest.Ingress("plain", "plain.test", "/", "plain") +
		headgatetest.Ingress("wild", "*.through.test", "/", "plain") +
		headgatetest.Ingress("https", "https.test", "/", "plain", "backend-protocol: HTTPS") // so that no reload is needed for it
	through := served("one", startTLSEcho(t, "one")) + served("two", startTLSEcho(t, "two"))
	p := startProgram(t, binary, plain, "--enable-ssl-passthrough")
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	p.wantHanded("plain.test")
	if n := p.handed(); n != "0" {
		t.Errorf("without a host, the controller had %s connections", n)
	}

	reloads := p.reloads()
	asked := []string{"ssl-passthrough: true", "backend-protocol: HTTPS"}
	p.write("manifests/through.yaml", through+headgatetest.Ingress("through", "through.test", "/", "one", asked...), 0o644)
	p.wantCertificate("through.test", "one")
	for _, name := range []string{"plain.test", "a.through.test", ""} {
		p.wantHanded(name)
	}
	if n := p.handed(); n == "0" {
		t.Error("with a host, the controller had no connections")
	}
	p.checkHTTPSide()
	kept := p.tlsTo("through.test")
	kept.want(t, "one")

	p.write("manifests/through.yaml", through+headgatetest.Ingress("through", "through.test", "/", "two", asked...), 0o644)
	p.wantCertificate("through.test", "two")
	kept.want(t, "one")
	p.checkNGINXDies()
	kept.want(t, "one")
	p.write("manifests/through.yaml", through+headgatetest.Ingress("through", "through.test", "/", "two", asked[1]), 0o644)
	p.wantCertificate("through.test", "")
	if n := p.reloads(); n != reloads {
		t.Errorf("%s reloads after a change of hosts, %s before", n, reloads)
	}
	kept.want(t, "one")

	p.write("manifests/through.yaml", through+headgatetest.Ingress("through", "through.test", "/", "two", asked...), 0o644)
	p.wantCertificate("through.test", "two")
	for _, keys := range [][]string{{"bind-address: 127.0.0.1"}, {"bind-address: 127.0.0.1", "reuse-port: false"}, {"reuse-port: false"}, {"bind-address: 127.0.0.1"}, nil} {
		p.write("manifests/config.yaml", headgatetest.Config(keys...), 0o644)
		limited := strings.Contains(strings.Join(keys, ""), "bind-address")
		headgatetest.Eventually(t, fmt.Sprintf("%v holds", keys), func() bool {
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.3:%d", p.https))
			if err == nil {
				c.Close()
			}
			return (err != nil) == limited
		})
		p.wantCertificate("through.test", "two")
		p.wantHanded("plain.test")
		kept.want(t, "one")
	}

	handed := p.tlsTo("plain.test")
	kill(t, p.cmd.Process.Pid, syscall.SIGTERM)
	headgatetest.Eventually(t, "the port is closed", func() bool { return !opens(p.https) })
	kept.want(t, "one")
	kept.Close()
	handed.Close()
	<-p.ended
	if !p.cmd.ProcessState.Success() {
		t.Errorf("it left with %s", p.cmd.ProcessState)
	}
	if log := p.log.String(); strings.Count(log, " TLS 200 ") == 0 {
		t.Error("the access log lacks connections")
	}
}

// TLS passthrough behind a load balancer: the header counts for hosts that are passed through and
// for NGINX's, with its address and its port. Whom it names is not believed.
func checkPassthroughBehindLoadBalancer(t *testing.T, binary string) {
	t.Parallel()
	p := startProgram(t, binary, served("plain", headgatetest.StartEcho(t, "plain"))+headgatetest.Ingress("plain", "plain.test", "/", "plain")+
		served("one", startTLSEcho(t, "one"))+headgatetest.Ingress("through", "through.test", "/", "one", "ssl-passthrough: true", "backend-protocol: HTTPS")+
		headgatetest.Config("use-proxy-protocol: true", "use-forwarded-headers: true", "proxy-real-ip-cidr: "+clientAddress+"/32"), "--enable-ssl-passthrough")
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	through, err := p.dialTLSBehind("through.test")
	if err != nil {
		t.Fatal(err)
	}
	defer through.Close()
	through.want(t, "one")
	plain, err := p.dialTLSBehind("plain.test")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	echo, err := plain.ask()
	if address, port := echo.Header.Get("X-Real-Ip"), echo.Header.Get("X-Forwarded-Port"); err != nil || address != "203.0.113.7" || port != "8443" {
		t.Errorf("the backend sees client %q at port %q, %v", address, port, err)
	}
	if _, err := p.dialTLS("plain.test"); err == nil {
		t.Error("a connection without the header is served")
	}
}

// TLS passthrough and headers: those of a load balancer are believed on the port that the
// controller has, as on the other one.
func checkPassthroughAndHeaders(t *testing.T, binary string) {
	t.Parallel()
	p := startProgram(t, binary, served("plain", headgatetest.StartEcho(t, "plain"))+headgatetest.Ingress("plain", "plain.test", "/", "plain")+
		headgatetest.Config("use-forwarded-headers: true", "proxy-real-ip-cidr: "+clientAddress+"/32"), "--enable-ssl-passthrough")
	p.open(true)
	p.wantHealth("with NGINX", 200, "ok")
	echo, err := p.tlsTo("plain.test").ask()
	if address := echo.Header.Get("X-Real-Ip"); err != nil || address != "192.0.2.9" || echo.Header.Get("X-Forwarded-For") != address {
		t.Errorf("the backend sees client %q, %v", address, err)
	}
}

// dialTLSBehind is dialTLS by a load balancer.
func (p *program) dialTLSBehind(name string) (*tlsLine, error) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(clientAddress)}, Timeout: headgatetest.Timeout}
	c, err := dialer.Dial("tcp", headgatetest.Address(p.https))
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprint(c, "PROXY TCP4 203.0.113.7 192.0.2.1 40000 8443\r\n"); err != nil {
		return nil, err
	}
	secure := tls.Client(c, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err := secure.Handshake(); err != nil {
		c.Close()
		return nil, err
	}
	return &tlsLine{secure, bufio.NewReader(secure), name}, nil
}

// checkHTTPSide checks that a passthrough host is served as usual over http.
func (p *program) checkHTTPSide() {
	p.t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://"+headgatetest.Address(p.http)+"/", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	request.Host = "through.test"
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("X-Echo") != "one" {
		p.t.Errorf("over http: %s from %q", response.Status, response.Header.Get("X-Echo"))
	}
}

// checkNGINXDies: meanwhile connections that are passed through go on, and those for NGINX
// wait.
func (p *program) checkNGINXDies() {
	t := p.t
	t.Helper()
	p.open(false)
	kill(t, -p.master(), syscall.SIGKILL)
	p.wantHealth("without NGINX", 500, "")
	p.wantCertificate("through.test", "two")
	waits := make(chan error, 1)
	go func() {
		c, err := p.dialTLS("plain.test")
		if err == nil {
			c.Close()
		}
		waits <- err
	}()
	p.open(true)
	// NGINX may answer before it has certificates.
	if err := <-waits; err != nil && !strings.Contains(err.Error(), "remote error: tls") {
		t.Errorf("a connection that waited for NGINX: %v", err)
	}
	p.wantHealth("with NGINX again", 200, "ok")
}

// handed is the number of connections that the controller took for NGINX.
func (p *program) handed() string {
	for line := range strings.Lines(p.metrics()) {
		if rest, ok := strings.CutPrefix(line, fmt.Sprintf(`headgate_stream_connections_total{port="%d",protocol="https",status="200"} `, p.https)); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "unknown"
}

// A tlsLine is a connection for https.
type tlsLine struct {
	*tls.Conn
	reader *bufio.Reader
	name   string
}

const clientAddress = "127.0.0.77"

func (p *program) dialTLS(name string) (*tlsLine, error) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(clientAddress)}, Timeout: headgatetest.Timeout}
	c, err := tls.DialWithDialer(dialer, "tcp", headgatetest.Address(p.https), &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	return &tlsLine{c, bufio.NewReader(c), name}, nil
}

func (p *program) tlsTo(name string) *tlsLine {
	p.t.Helper()
	l, err := p.dialTLS(name)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { l.Close() })
	return l
}

// ask sends a request that claims to come from elsewhere.
func (l *tlsLine) ask() (headgatetest.Echo, error) {
	var echo headgatetest.Echo
	if _, err := fmt.Fprintf(l, "GET / HTTP/1.1\r\nHost: %s\r\nX-Real-IP: 192.0.2.9\r\nX-Forwarded-For: 192.0.2.9\r\n\r\n", l.name); err != nil {
		return echo, err
	}
	response, err := http.ReadResponse(l.reader, nil)
	if err != nil {
		return echo, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return echo, fmt.Errorf("the status is %s", response.Status)
	}
	return echo, json.NewDecoder(response.Body).Decode(&echo)
}

// want asks once more, of the backend of that name.
func (l *tlsLine) want(t *testing.T, backend string) {
	t.Helper()
	if echo, err := l.ask(); err != nil || echo.Backend != backend {
		t.Errorf("%s answers as %q, %v", l.name, echo.Backend, err)
	}
}

// wantCertificate waits until a backend answers TLS for a name; without one, until NGINX does.
func (p *program) wantCertificate(name, backend string) {
	p.t.Helper()
	headgatetest.Eventually(p.t, name+" is answered by "+backend, func() bool {
		l, err := p.dialTLS(name)
		if err != nil {
			return false
		}
		defer l.Close()
		cn := l.ConnectionState().PeerCertificates[0].Subject.CommonName
		return cn == backend || backend == "" && cn != "one" && cn != "two"
	})
}

// wantHanded checks that NGINX serves a name, and knows the client.
func (p *program) wantHanded(name string) {
	p.t.Helper()
	l := p.tlsTo(name)
	defer l.Close()
	if l.name == "" {
		l.name = "plain.test"
	}
	echo, err := l.ask()
	if address := echo.Header.Get("X-Real-Ip"); err != nil || echo.Backend != "plain" || address != clientAddress || echo.Header.Get("X-Forwarded-Port") != "443" {
		p.t.Errorf("%s: backend %q sees client %q, %v", name, echo.Backend, address, err)
	}
}

// startTLSEcho is an echo backend with a certificate of its name.
func startTLSEcho(t *testing.T, name string) string {
	t.Helper()
	pair := headgatetest.NewKeyPair(t, name, "through.test")
	certificate, err := tls.X509KeyPair([]byte(pair.Certificate), []byte(pair.Key))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: headgatetest.Echoes(name)}
	// It ends with the test.
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	return listener.Addr().String()
}
