package clientcert_test

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/pkitest"
)

// A client asks over connections for one name, with a certificate or none.
type client struct {
	*http.Client
	t        *testing.T
	instance *headgatetest.Instance
	name     string
}

// config is that of connections for a name. It sends the certificate even if the server
// names other authorities.
func config(name string, certificate *tls.Certificate) *tls.Config {
	c := &tls.Config{ServerName: name, InsecureSkipVerify: true}
	if certificate != nil {
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	return c
}

func newClient(t *testing.T, g *headgatetest.Instance, http2 bool, name string, certificate *tls.Certificate) client {
	t.Helper()
	c := g.NewClient(http2)
	c.Transport.(*http.Transport).TLSClientConfig = config(name, certificate)
	t.Cleanup(c.CloseIdleConnections)
	return client{c, t, g, name}
}

// newHTTP3Client is the same over HTTP/3.
func newHTTP3Client(t *testing.T, g *headgatetest.Instance, name string, certificate *tls.Certificate) client {
	t.Helper()
	transport := g.NewHTTP3Transport(nil, config(name, certificate))
	t.Cleanup(func() {
		if err := transport.Close(); err != nil {
			t.Error(err)
		}
	})
	return client{&http.Client{
		Timeout: headgatetest.Timeout, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, t, g, name}
}

// ask sends a request for a host, that of the connection if it is empty.
func (c client) ask(host, path string, headers ...string) headgatetest.Response {
	c.t.Helper()
	r := headgatetest.Request{Scheme: "https", Host: cmp.Or(host, c.name), Path: path, Header: http.Header{}}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	response, err := c.instance.Try(c.Client, r)
	if err != nil {
		c.t.Fatalf("%s%s over a connection for %s: %v", host, path, c.name, err)
	}
	return response
}

// secured is an Ingress of a host with a certificate.
func secured(name, host string, annotations ...string) string {
	return headgatetest.WithTLS(headgatetest.Ingress(name, host, "/", "a", annotations...), "tls "+host)
}

func start(t *testing.T, manifests string) *headgatetest.Instance {
	t.Helper()
	return headgatetest.Start(t, headgatetest.Options{Timing: headgatetest.Hasty(), Manifests: manifests +
		headgatetest.Service("a") + headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.TLSSecret("tls", headgatetest.NewKeyPair(t, "tls", "*.test", "*.w.test"))})
}

// seen is what a backend gets about the client.
func seen(r headgatetest.Response) string {
	if r.Echo == nil {
		return "no backend"
	}
	var list []string
	for _, name := range []string{"Verify", "Subject-Dn", "Issuer-Dn"} {
		list = append(list, strings.Join(r.Echo.Header["Ssl-Client-"+name], "+"))
	}
	if pem := r.Echo.Header.Get("Ssl-Client-Cert"); pem != "" {
		text, err := url.PathUnescape(pem)
		if err != nil {
			text = err.Error()
		}
		list = append(list, text)
	}
	return strings.Join(list, "|")
}

// Who may pass, what the others get, and what backends get: over each protocol.
func TestModes(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, "ca"), newAuthority(t, "other")
	one, two := ca.below("one"), (*authority)(nil)
	two = one.below("two")
	good := ca.issue("good")
	expired := ca.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "expired"}, NotAfter: time.Now().Add(-time.Minute)})
	// The client that a name stands for; a nil one shows no certificate.
	clients := map[string]*tls.Certificate{
		"none": nil, "good": good, "other": other.issue("other"), "expired": expired, "revoked": ca.issue("revoked"),
		"deep": one.issue("deep", one), "no-chain": one.issue("no-chain"), "deeper": two.issue("deeper", two, one),
	}
	const from = "auth-tls-secret: default/ca"
	manifests := caSecret("ca", "", ca) + caSecret("revoking", ca.revoke(clients["revoked"]), ca) + caSecret("both", "", other, ca) + headgatetest.Config("use-http3: true")
	want := map[string]string{}
	host := func(name, outcomes string, annotations ...string) {
		host := name + ".test"
		if name == "wild" {
			manifests, host = manifests+secured(name, "*.w.test", annotations...), "any.w.test"
		} else {
			manifests += secured(name, host, annotations...)
		}
		want[host] = outcomes
	}
	host("on", "none 400 good 200 other 400 expired 400 revoked 200 deep 200 no-chain 400 deeper 400", from)
	host("wild", "none 400 good 200 other 400", from)
	host("optional", "none 200 good 200 other 400 expired 400", from, "auth-tls-verify-client: optional")
	host("any", "none 200 good 200 other 200 expired 400 no-chain 200", from, "auth-tls-verify-client: optional_no_ca")
	host("off", "none 200 good 200 other 200", from, "auth-tls-verify-client: off")
	host("deep", "deep 200 deeper 200 no-chain 400", from, "auth-tls-verify-depth: 2")
	host("revoking", "none 400 good 200 revoked 400", "auth-tls-secret: default/revoking")
	host("both", "good 200 other 200 none 400", "auth-tls-secret: default/both")
	host("match", "none 400 good 200 deep 403 other 400", from, "auth-tls-match-cn: CN=go+d,O=Tests$")
	host("case", "good 403", from, "auth-tls-match-cn: CN=GOOD")
	host("match-optional", "none 403 good 200", from, "auth-tls-match-cn: CN=good", "auth-tls-verify-client: optional")
	host("page", "none 302 good 200 other 302", from, "auth-tls-error-page: https://help.test/?from=$request_uri")
	host("local", "none 400 good 200 other 400", from, "auth-tls-error-page: /help")
	host("redirect", "none 400 good 301", from, "permanent-redirect: https://new.test/")
	host("cors", "none 400 good 200", from, "enable-cors: true")
	host("open", "none 200 good 200 other 200")
	g := start(t, manifests)
	for host, outcomes := range want {
		list := strings.Fields(outcomes)
		for i := 0; i < len(list); i += 2 {
			certificate := clients[list[i]]
			asking := map[string]client{"HTTP/1.1": newClient(t, g, false, host, certificate), "HTTP/2.0": newClient(t, g, true, host, certificate)}
			if g.HTTP3() {
				asking["HTTP/3.0"] = newHTTP3Client(t, g, host, certificate)
			}
			for proto, c := range asking {
				// The second one finds what the first one left at the connection.
				for range 2 {
					r := c.ask("", "/a?b", "Ssl-Client-Verify: SUCCESS", "ssl-client-subject-dn: CN=forged", "ssl-client-cert: forged", "Origin: https://a.test")
					if got := http.StatusText(r.Status); r.Proto != proto || got != http.StatusText(number(list[i+1])) {
						t.Errorf("%s with certificate %s over %s: status %d, want %s", host, list[i], r.Proto, r.Status, list[i+1])
					}
					if got, want := seen(r), expected(host, list[i], list[i+1], clients[list[i]]); got != want {
						t.Errorf("%s with certificate %s over %s: the backend gets %q, want %q", host, list[i], r.Proto, got, want)
					}
					if r.Status == http.StatusFound && r.Header.Get("Location") != "https://help.test/?from=/a?b" {
						t.Errorf("%s: Location %s", host, r.Header.Get("Location"))
					}
				}
			}
		}
	}
}

func number(status string) int {
	var n int
	for _, c := range status {
		n = 10*n + int(c-'0')
	}
	return n
}

// expected is what the backend of a host of TestModes gets.
func expected(host, name, status string, certificate *tls.Certificate) string {
	switch {
	case status != "200":
		return "no backend"
	case host == "open.test":
		return "||"
	case certificate == nil || host == "off.test":
		return "NONE||"
	}
	issuer := "|" + certificate.Leaf.Issuer.String()
	subject := "CN=" + name + ",O=Tests"
	if host == "any.test" && name != "good" {
		return "FAILED:unable to verify the first certificate|" + subject + issuer
	}
	return "SUCCESS|" + subject + issuer
}

// The certificate itself goes to backends and to auth services, and no client can forge it.
func TestPassedCertificate(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	good := ca.issue("good")
	asked := make(chan http.Header, 100)
	service := headgatetest.StartBackend(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header }))
	g := start(t, caSecret("ca", "", ca)+
		secured("pass", "pass.test", "auth-tls-secret: default/ca", "auth-tls-pass-certificate-to-upstream: true", "auth-url: http://"+service+"/")+
		secured("plain", "plain.test", "auth-url: http://"+service+"/")+
		secured("optional", "optional.test", "auth-tls-secret: default/ca", "auth-tls-pass-certificate-to-upstream: true", "auth-tls-verify-client: optional")+
		headgatetest.Ingress("open", "open.test", "/", "a"))
	forged := []string{"ssl-client-verify: SUCCESS", "ssl-client-subject-dn: CN=forged", "ssl-client-issuer-dn: CN=forged", "ssl-client-cert: forged"}
	pem := pkitest.PEM(good.Leaf)
	all := "SUCCESS|CN=good,O=Tests|CN=ca|" + pem
	for _, http2 := range []bool{false, true} {
		r := newClient(t, g, http2, "pass.test", good).ask("", "/", forged...).WantStatus(t, 200)
		if got := seen(r); got != all {
			t.Errorf("the backend gets %q, want %q", got, all)
		}
		r.Echo.Header = <-asked
		if got := seen(r); got != all {
			t.Errorf("the auth service gets %q, want %q", got, all)
		}
		r = newClient(t, g, http2, "plain.test", good).ask("", "/", forged...).WantStatus(t, 200)
		if got := seen(r); got != "||" {
			t.Errorf("the backend of a host without client certificates gets %q", got)
		}
		r.Echo.Header = <-asked
		if got := seen(r); got != "||" {
			t.Errorf("the auth service of a host without client certificates gets %q", got)
		}
		if got := seen(newClient(t, g, http2, "optional.test", nil).ask("", "/", forged...)); got != "NONE||" {
			t.Errorf("without a certificate the backend gets %q", got)
		}
	}
	header := http.Header{}
	for _, h := range forged {
		name, value, _ := strings.Cut(h, ": ")
		header.Set(name, value)
	}
	if got := seen(g.Do(headgatetest.Request{Host: "open.test", Header: header})); got != "||" {
		t.Errorf("over http the backend gets %q", got)
	}
}

// Over plain http there is no certificate. As with ingress-nginx, such requests pass
// unless they are redirected, or the subject counts.
func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	const from = "auth-tls-secret: default/ca"
	g := start(t, caSecret("ca", "", ca)+secured("tls", "tls.test", from)+headgatetest.Ingress("none", "none.test", "/", "a", from)+
		headgatetest.Ingress("match", "match.test", "/", "a", from, "auth-tls-match-cn: CN=")+
		headgatetest.Ingress("missing", "missing.test", "/", "a", "auth-tls-secret: default/missing"))
	g.Get("tls.test", "/").WantStatus(t, 308)
	if got := seen(g.Get("none.test", "/").WantStatus(t, 200)); got != "||" {
		t.Errorf("the backend gets %q", got)
	}
	g.Get("match.test", "/").WantStatus(t, 403)
	g.Get("missing.test", "/").WantStatus(t, 403)
	// A host without a TLS section has client certificates all the same.
	newClient(t, g, false, "none.test", nil).ask("", "/").WantStatus(t, 400)
	newClient(t, g, true, "none.test", ca.issue("good")).ask("", "/").WantStatus(t, 200)
}

// A redirect to a path with a slash comes behind the check, as all redirects do.
func TestRedirectsToSlash(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t, "ca"), newAuthority(t, "other")
	path := func(name, host string, annotations ...string) string {
		return headgatetest.WithTLS(headgatetest.Ingress(name, host, "/app/", "a", annotations...), "tls "+host)
	}
	g := start(t, caSecret("ca", "", ca)+path("s", "s.test", "auth-tls-secret: default/ca", "permanent-redirect: https://new.test/")+path("open", "open.test"))
	good := ca.issue("good")
	for _, c := range []struct {
		name, host string
		client     *tls.Certificate
		want       int
	}{
		{"s.test", "", nil, 400}, {"s.test", "", other.issue("other"), 400}, {"s.test", "", good, 301},
		{"open.test", "", nil, 301}, {"open.test", "s.test", good, 421},
	} {
		for _, http2 := range []bool{false, true} {
			r := newClient(t, g, http2, c.name, c.client).ask(c.host, "/app?q").WantStatus(t, c.want)
			if to := r.Header.Get("Location"); c.want == 301 && to != "https://"+c.name+"/app/?q" {
				t.Errorf("%s: a redirect to %q", c.name, to)
			}
		}
	}
	if status, closed := keep(t, g, config("open.test", good)).askPath("s.test", "/app"); status != 421 || !closed {
		t.Errorf("over a connection for another host: status %d, closed %v", status, closed)
	}
}

// A service that answers for requests that were refused, here or by the backend, does not get
// them as those of a client whose certificate counts.
func TestErrorServicesOfRefusedRequests(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	answering := func(status int) string {
		return headgatetest.StartBackend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	}
	pages := []string{
		"custom-http-errors: 401,403,500", "default-backend: pages", "auth-tls-secret: default/ca", "auth-tls-verify-client: optional",
		"auth-tls-pass-certificate-to-upstream: true",
	}
	host := func(name, service string, annotations ...string) string {
		return headgatetest.WithTLS(headgatetest.Ingress(name, name+".test", "/", service, append(annotations, pages...)...), "tls "+name+".test")
	}
	manifests := caSecret("ca", "", ca) + headgatetest.Service("pages") + headgatetest.Endpoints("pages", headgatetest.StartEcho(t, "pages"))
	for status, service := range map[int]string{401: "none", 403: "own", 500: "broken"} {
		manifests += headgatetest.Service(service) + headgatetest.Endpoints(service, answering(status))
	}
	g := start(t, manifests+host("match", "a", "auth-tls-match-cn: CN=another")+host("list", "a", "whitelist-source-range: 10.0.0.0/8")+
		host("service", "a", "auth-url: http://"+answering(401)+"/")+host("down", "a", "auth-url: http://"+answering(500)+"/")+
		host("none", "none")+host("own", "own")+host("broken", "broken"))
	good := ca.issue("good")
	for name, want := range map[string]string{
		"match": "403", "list": "403", "service": "401", "down": "500", "none": "401", "own": "403", "broken": "500",
	} {
		for _, client := range []*tls.Certificate{good, nil} {
			r := newClient(t, g, true, name+".test", client).ask("", "/", "ssl-client-verify: SUCCESS", "ssl-client-cert: x")
			if r.Echo == nil || r.Echo.Header.Get("X-Code") != want {
				t.Errorf("%s: status %d, the service gets %v", name, r.Status, r.Echo)
				continue
			}
			about := "||"
			if name == "broken" && client != nil {
				about = "SUCCESS|CN=good,O=Tests|CN=ca|" + pkitest.PEM(good.Leaf)
			} else if name == "broken" {
				about = "NONE||"
			}
			if got := seen(r); got != about {
				t.Errorf("%s: the service gets %q", name, got)
			}
		}
	}
}
