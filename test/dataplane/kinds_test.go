package dataplane_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// Kinds are requests of each kind. The host of each is NAME.test, and so is its Ingress' name.
type kinds struct {
	t *testing.T
	// manifests serve them.
	manifests string
	// arrived and leave are of requests to the backend slow, which ends with the client, or when leave gets something.
	arrived, leave chan struct{}
}

func newKinds(t *testing.T) *kinds {
	k := &kinds{t: t, arrived: make(chan struct{}), leave: make(chan struct{})}
	slow := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		k.arrived <- struct{}{}
		select {
		case <-r.Context().Done():
		case <-k.leave:
		}
	}))
	var connections, tries atomic.Int32
	one := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "fail" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		_, _ = io.Copy(w, r.Body)
	}))
	// Each request fails once, at the endpoint that it goes to first.
	second := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if tries.Add(1)%2 == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	refuses := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	two := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "two") }))
	talks := headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { talkBack(w) }))
	grpc := startH2C(t, &connections, http.HandlerFunc(answerGRPC))
	pair := headgatetest.NewKeyPair(t, "tls.test", "tls.test", "grpc.test", "client-certificate.test")
	ingress := func(name string, annotations ...string) string {
		return headgatetest.Ingress(name, name+".test", "/", "one", annotations...)
	}
	to := func(service, name string, annotations ...string) string {
		return headgatetest.Ingress(name, name+".test", "/", service, annotations...)
	}
	k.manifests = headgatetest.Config("allow-snippet-annotations: true", "annotations-risk-level: Critical", "block-user-agents: crawler", "enable-access-log-for-default-backend: true") +
		served("one", one) + served("two", two) + served("slow", slow) + served("dead", "127.0.0.1:1") + served("empty") +
		served("again", headgatetest.StartBackend(t, second), headgatetest.StartBackend(t, second)) + served("talks", talks) + served("grpc", grpc) +
		headgatetest.TLSSecret("tls", pair) +
		guardSecrets(pair) +
		ingress("proxied", "enable-cors: true", "server-alias: alias.test") + to("again", "retried", "proxy-next-upstream: http_503") +
		ingress("moved", "permanent-redirect: http://elsewhere.test/") + ingress("application", "app-root: /application") +
		headgatetest.WithTLS(ingress("tls"), "tls tls.test") + headgatetest.WithTLS(to("grpc", "grpc", "backend-protocol: GRPC"), "tls grpc.test") +
		headgatetest.WithTLS(ingress("client-certificate", "auth-tls-secret: default/authorities"), "tls client-certificate.test") +
		ingress("password", "auth-type: basic", "auth-secret: users") +
		ingress("no-users", "auth-type: basic", "auth-secret: missing") + ingress("external", "auth-url: http://"+refuses+"/") +
		ingress("signin", "auth-url: http://"+refuses+"/", "auth-signin: http://signin.test/") + ingress("allowed", "auth-url: http://"+one+"/") +
		ingress("no-service", "auth-url: http://127.0.0.1:1/") + ingress("rate", "limit-rpm: 1", "limit-burst-multiplier: 1") + ingress("bare", "from-to-www-redirect: true") +
		ingress("allowlist", "whitelist-source-range: 192.0.2.0/24") + ingress("denylist", "denylist-source-range: 127.0.0.0/8") +
		to("slow", "limit", "limit-connections: 1") + ingress("body", "proxy-body-size: 1k") + ingress("blocked") +
		ingress("firewall", "enable-modsecurity: true", "modsecurity-snippet: "+refusesAll) +
		ingress("canary") + headgatetest.Ingress("share", "canary.test", "/", "two", "canary: true", "canary-by-header: X-Canary") +
		ingress("mirror", "mirror-target: http://"+one+"/copy") + to("talks", "websocket") + to("slow", "gone") +
		to("slow", "timeout", "proxy-read-timeout: 1", "proxy-next-upstream: off") + to("dead", "refused") + to("empty", "empty") +
		to("empty", "replaced", "custom-http-errors: 503", "default-backend: one") + headgatetest.Ingress("path", "path.test", "/path", "one") +
		headgatetest.Ingress("wildcard", "*.wildcard.test", "/", "one")
	return k
}

// A wanted is a request, with the status that it gets.
type wanted struct {
	scheme, method, host, target, body string
	header                             http.Header
	status                             int
}

// simple are requests that wait for nothing.
func simple() []wanted {
	header := func(name, value string) http.Header { return http.Header{name: {value}} }
	return []wanted{
		{host: "proxied", status: 200}, {host: "proxied", method: "POST", body: "hello", status: 200}, {host: "proxied", target: "?fail", status: 500},
		{host: "proxied", method: "INVENTED", status: 200}, {host: "alias", status: 200}, {host: "a.wildcard", status: 200},
		{host: "proxied", method: "OPTIONS", header: http.Header{"Origin": {"http://page.test"}, "Access-Control-Request-Method": {"PUT"}}, status: 204},
		{host: "retried", status: 200}, {host: "moved", status: 301}, {host: "application", status: 302}, {host: "tls", status: 308}, {scheme: "https", host: "tls", status: 200},
		{scheme: "https", host: "grpc", method: "POST", target: "pkg.Service/Method", body: "\x00\x00\x00\x00\x04ping", header: http.Header{"Te": {"trailers"}, "Content-Type": {"application/grpc"}}, status: 200},
		{scheme: "https", host: "client-certificate", status: 400}, {host: "password", status: 401}, {host: "no-users", status: 503}, {host: "external", status: 401},
		{host: "signin", status: 302}, {host: "allowed", status: 200}, {host: "no-service", status: 500}, {host: "www.bare", status: 308}, {host: "proxied", method: "HEAD", status: 200},
		{host: "allowlist", status: 403}, {host: "denylist", status: 403}, {host: "body", method: "POST", body: strings.Repeat("x", 2000), status: 413},
		{host: "blocked", header: header("User-Agent", "crawler"), status: 403}, {host: "firewall", status: 403},
		{host: "canary", status: 200}, {host: "canary", target: "?fail", status: 500}, {host: "canary", header: header("X-Canary", "always"), status: 200}, {host: "mirror", status: 200},
		{host: "refused", status: 502}, {host: "empty", status: 503}, {host: "replaced", status: 200}, {host: "path", target: "elsewhere", status: 404}, {host: "unknown", status: 404},
	}
}

// send sends one request of each kind.
func (k *kinds) send(p *program) {
	k.t.Helper()
	for _, w := range simple() {
		k.ask(p, w)
	}
	// Two pass at once, and the next one after a minute.
	for _, status := range []int{200, 200, 503} {
		k.ask(p, wanted{host: "rate", status: status})
	}
	k.unreadable(p)
	socket := p.webSocket("websocket.test")
	if err := say(socket, "hello"); err != nil {
		k.t.Error(err)
	}
	socket.close()

	gone := &line{port: p.http}
	if err := gone.send("GET / HTTP/1.1\r\nHost: gone.test\r\nReferer: gone\r\n\r\n"); err != nil {
		k.t.Fatal(err)
	}
	<-k.arrived
	gone.close()

	k.meanwhile(p, wanted{host: "timeout", status: 504}, func() {})
	k.meanwhile(p, wanted{host: "limit", status: 200}, func() {
		k.ask(p, wanted{host: "limit", status: 503})
		k.leave <- struct{}{}
	})
}

// unreadable sends what NGINX can't read.
func (k *kinds) unreadable(p *program) {
	k.t.Helper()
	l := &line{port: p.http}
	defer l.close()
	if err := l.send("GET /%zz HTTP/1.1\r\nHost: proxied.test\r\n\r\n"); err != nil {
		k.t.Fatal(err)
	}
	if answer, err := l.answer(); err != nil || answer.StatusCode != http.StatusBadRequest {
		k.t.Errorf("%+v, %v; want 400", answer, err)
	}
}

// meanwhile does something while the backend slow has a request.
func (k *kinds) meanwhile(p *program, w wanted, do func()) {
	k.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.ask(p, w)
	}()
	<-k.arrived
	do()
	<-done
}

// ask sends a request over a connection of its own.
func (k *kinds) ask(p *program, w wanted) {
	k.t.Helper()
	port := p.http
	if w.scheme == "" {
		w.scheme = "http"
	} else {
		port = p.https
	}
	request, err := http.NewRequest(w.method, fmt.Sprintf("%s://%s.test/%s", w.scheme, w.host, w.target), strings.NewReader(w.body))
	if err != nil {
		k.t.Error(err)
		return
	}
	if w.header != nil {
		request.Header = w.header.Clone()
	}
	// So each line of the access log says what it is for.
	request.Header.Set("Referer", w.host)
	transport := &http.Transport{
		DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", headgatetest.Address(port))
		},
	}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		k.t.Errorf("%s %s: %v", w.method, request.URL, err)
		return
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != w.status {
		k.t.Errorf("%s %s: status %d, %v; want %d", w.method, request.URL, response.StatusCode, err, w.status)
	}
}
