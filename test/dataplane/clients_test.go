package dataplane_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/gatetest"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/pkitest"
)

// verifying are the features with one more, which demands of a host's clients a
// certificate of the authority in the Secret that "only-from" names.
func verifying() []feature.Feature {
	authority := feature.Setting[feature.ObjectName]{
		Annotation: "only-from", Parse: feature.Object, OnInvalid: feature.Deny, Refers: feature.Secret, Risk: feature.Low,
		Scope: feature.ScopeHost, Merge: feature.MergeTogether, Leads: true,
	}
	depth := feature.Setting[int]{Annotation: "only-from-depth", Default: 1, Parse: feature.Int(0, 9), Scope: feature.ScopeHost, Merge: feature.MergeTogether}
	return append(all.Features(), feature.Feature{
		Name: "only_from", Settings: []feature.Declared{authority, depth},
		Host: func(v feature.Values, out *feature.HostOut) {
			if secret, ok := feature.SecretOf(v, authority); ok {
				out.TLS.Clients = &model.Clients{CA: feature.NewContent(secret["tls.crt"]), Depth: depth.Get(v)}
				out.Policy = struct{}{}
			}
		},
		Lua: `
local requests = require "headgate.request"
return {
    guard = function(_, request)
        ngx.header["X-Guarded"] = "yes"
        if ngx.var.ssl_client_verify ~= "SUCCESS" then
            return requests.finish(request, 400)
        end
    end,
    send = function()
        ngx.req.set_header("X-Client", ngx.var.ssl_client_s_dn)
    end,
}`,
	})
}

// A client is somebody with or without a certificate.
type client struct {
	name        string
	certificate *tls.Certificate
}

var nobody = client{name: "nobody"}

// newClient makes an authority, which goes into a Secret of that name, and
// somebody with a certificate of it.
func newClient(t *testing.T, name string) (somebody client, secret string) {
	t.Helper()
	authority := pkitest.New(t)
	pair := authority.Issue(name)
	certificate, err := tls.X509KeyPair([]byte(pair.Chain), []byte(pair.Key))
	if err != nil {
		t.Fatal(err)
	}
	return client{name, &certificate}, gatetest.TLSSecret(name, gatetest.KeyPair{Certificate: pkitest.PEM(authority.Root), Key: pair.Key})
}

// config is what the client has of TLS. It shows its certificate whoever asks.
func (c client) config(serverName string) *tls.Config {
	config := &tls.Config{ServerName: serverName, InsecureSkipVerify: true}
	if c.certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.certificate, nil }
	}
	return config
}

// A tlsVisit is a client's connection, made under one name, over which it may ask
// for others. An empty name is none.
type tlsVisit struct {
	t          *testing.T
	g          *gatetest.Gate
	client     *http.Client
	serverName string
}

func visitAs(t *testing.T, g *gatetest.Gate, http2 bool, serverName string, config *tls.Config) *tlsVisit {
	v := &tlsVisit{t, g, g.NewClient(http2), serverName}
	v.client.Transport.(*http.Transport).TLSClientConfig = config
	v.client.Transport.(*http.Transport).MaxConnsPerHost = 1
	t.Cleanup(v.client.CloseIdleConnections)
	return v
}

// ask asks for a host.
func (v *tlsVisit) ask(host, path string) *http.Response {
	v.t.Helper()
	request := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "https", Host: v.serverName, Path: path}, Host: host, Header: http.Header{}}
	if v.serverName == "" {
		request.URL.Host = "127.0.0.1"
	}
	answer, err := v.client.Do(request)
	if err != nil {
		v.t.Fatalf("%s asked for over %q: %v", host, v.serverName, err)
	}
	defer answer.Body.Close()
	// What is not read would end the connection.
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		v.t.Fatal(err)
	}
	return answer
}

// want asks for a host, and tells whether the connection resumed a session.
func (v *tlsVisit) want(host, path string, status int) (resumed bool) {
	v.t.Helper()
	answer := v.ask(host, path)
	if answer.StatusCode != status {
		v.t.Errorf("%s%s over %s made under %q: status %d, want %d", host, path, answer.Proto, v.serverName, answer.StatusCode, status)
	}
	if guarded := answer.Header.Get("X-Guarded") != ""; status == http.StatusMisdirectedRequest && (guarded || answer.Header.Get("Location") != "") {
		v.t.Errorf("%s%s over %s made under %q: something was told of the host: %v", host, path, answer.Proto, v.serverName, answer.Header)
	}
	return answer.TLS.DidResume
}

// The oldest Ingress that demands certificates decides over all routes of its
// host, whoever made them; where it can't be followed, nobody is let in, least
// of all the clients of the next Ingress.
func TestOneIngressDecidesOverClients(t *testing.T) {
	t.Parallel()
	one, first := newClient(t, "one")
	two, second := newClient(t, "two")
	// Of equally old ones the last by the alphabet counts as the oldest.
	old := func(annotations ...string) string { return securedHost("zeroth", "a.test", annotations...) }
	g := gatetest.Start(t, gatetest.Options{Features: verifying(), Timing: gatetest.Hasty(), Manifests: served("a", gatetest.StartEcho(t, "a")) +
		gatetest.TLSSecret("tls", gatetest.NewKeyPair(t, "tls", "a.test", "b.test")) + first + second + gatetest.Config("ssl-redirect: false") +
		old("only-from: one") + gatetest.Ingress("young", "a.test", "/young", "a", "only-from: two") +
		gatetest.Ingress("third", "a.test", "/open", "a") + securedHost("b", "b.test")})
	paths := []string{"/", "/young", "/open", "/open/x"}
	expect := func(ones, twos, nobodys int) {
		t.Helper()
		for c, status := range map[client]int{one: ones, two: twos, nobody: nobodys} {
			for _, http2 := range []bool{false, true} {
				v := visitAs(t, g, http2, "a.test", c.config("a.test"))
				for _, path := range paths {
					v.want("a.test", path, status)
				}
				visitAs(t, g, http2, "b.test", c.config("b.test")).want("b.test", "/", 200)
			}
		}
		for _, path := range paths {
			g.Get("a.test", path).WantStatus(t, nobodys)
		}
		g.Get("b.test", "/").WantStatus(t, 200)
	}
	expect(200, 400, 400)
	reloads := g.Value(g.Metrics.Reloads)
	// The chain has an intermediate.
	g.Apply(old("only-from: one", "only-from-depth: 0"))
	expect(400, 400, 400)
	// A bad value of what does not deny.
	g.Apply(old("only-from: one", "only-from-depth: many"))
	expect(200, 400, 400)
	for _, bad := range []string{"away", "", "a/b/c"} {
		g.Apply(old("only-from: " + bad))
		expect(503, 503, 503)
	}
	g.Delete(first)
	g.Apply(old("only-from: one"))
	expect(503, 503, 503)
	g.Apply(first)
	expect(200, 400, 400)
	g.Apply(old())
	expect(400, 200, 400)
	g.Delete(gatetest.Ingress("young", "a.test", "/young", "a"))
	expect(200, 200, 200)
	if n := g.Value(g.Metrics.Reloads); n != reloads {
		t.Errorf("%d reloads, want none", n-reloads)
	}
}

// Over a connection that was made under one host, another is asked for: one that
// verifies clients otherwise, or does not, sends the client away, to come back
// by a connection of its own.
func TestAnotherHostOverTheSameConnection(t *testing.T) {
	t.Parallel()
	one, first := newClient(t, "one")
	two, second := newClient(t, "two")
	names := strings.Fields("plain.test other.test one.test same.test two.test www.two.test *.w.test")
	g := gatetest.Start(t, gatetest.Options{Features: verifying(), Manifests: served("a", gatetest.StartEcho(t, "a")) +
		gatetest.TLSSecret("tls", gatetest.NewKeyPair(t, "tls", names...)) + first + second + gatetest.Config("ssl-session-tickets: true", "ssl-redirect: false") +
		securedHost("plain", "plain.test") + securedHost("other", "other.test", "ssl-ciphers: HIGH") +
		securedHost("one", "one.test", "only-from: one", "server-alias: alias.test") +
		securedHost("same", "same.test", "only-from: one") + securedHost("wild", "*.w.test", "only-from: one", "only-from-depth: 2") +
		securedHost("two", "two.test", "only-from: two", "from-to-www-redirect: true", "force-ssl-redirect: true") +
		gatetest.Secured(gatetest.Ingress("slash", "two.test", "/slash/", "a"), "tls two.test")})
	hosts := []string{"plain.test", "other.test", "one.test", "alias.test", "same.test", "two.test", "x.w.test"}
	for _, c := range []struct {
		serverName string
		as         client
		// want has the status for each of hosts.
		want [7]int
	}{
		{"plain.test", one, [7]int{200, 200, 421, 421, 421, 421, 421}},
		{"other.test", one, [7]int{200, 200, 421, 421, 421, 421, 421}},
		{"", one, [7]int{200, 200, 421, 421, 421, 421, 421}},
		{"one.test", one, [7]int{200, 200, 200, 200, 200, 421, 421}},
		{"alias.test", one, [7]int{200, 200, 200, 200, 200, 421, 421}},
		{"one.test", two, [7]int{200, 200, 400, 400, 400, 421, 421}},
		{"one.test", nobody, [7]int{200, 200, 400, 400, 400, 421, 421}},
		{"two.test", one, [7]int{200, 200, 421, 421, 421, 400, 421}},
		{"two.test", two, [7]int{200, 200, 421, 421, 421, 200, 421}},
		{"www.two.test", two, [7]int{200, 200, 421, 421, 421, 200, 421}},
		{"y.w.test", one, [7]int{200, 200, 421, 421, 421, 421, 200}},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, http2 := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s as %s, %s, HTTP/2 %v", c.serverName, c.as.name, tls.VersionName(version), http2), func(t *testing.T) {
					config := c.as.config(c.serverName)
					config.MinVersion, config.MaxVersion = version, version
					sessions := &wallet{}
					config.ClientSessionCache = sessions
					for _, again := range []bool{false, true} {
						v := visitAs(t, g, http2, c.serverName, config)
						if resumed := v.want("plain.test", "/", 200); resumed != again {
							t.Errorf("resumed: %v, want %v", resumed, again)
						}
						for i, host := range hosts {
							v.want(host, "/", c.want[i])
						}
						v.client.CloseIdleConnections()
					}
				})
			}
		}
	}
	for _, http2 := range []bool{false, true} {
		// Neither whether a path is there nor what the twin leads to.
		v := visitAs(t, g, http2, "one.test", one.config("one.test"))
		v.want("two.test", "/slash", 421)
		v.want("www.two.test", "/", 421)
		visitAs(t, g, http2, "two.test", two.config("two.test")).want("two.test", "/slash", 301)
	}
	// There is no connection of TLS that could be of another host.
	g.Get("two.test", "/").WantStatus(t, 308)
	g.Get("one.test", "/").WantStatus(t, 400)
}

// A session brings its client's certificate to where that was verified, and not
// to where it would be verified otherwise.
func TestSessionsKeepClientsApart(t *testing.T) {
	t.Parallel()
	one, first := newClient(t, "one")
	_, second := newClient(t, "two")
	g := gatetest.Start(t, gatetest.Options{Features: verifying(), Manifests: served("a", gatetest.StartEcho(t, "a")) +
		gatetest.TLSSecret("tls", gatetest.NewKeyPair(t, "tls", "plain.test", "one.test", "two.test")) + first + second +
		gatetest.Config("ssl-session-tickets: true") + securedHost("plain", "plain.test") +
		securedHost("one", "one.test", "only-from: one") + securedHost("two", "two.test", "only-from: two")})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, http2 := range []bool{false, true} {
			try := func(as client, serverName string, w *wallet, status int, resumed bool) {
				t.Helper()
				config := as.config(serverName)
				config.MinVersion, config.MaxVersion, config.ClientSessionCache = version, version, w
				v := visitAs(t, g, http2, serverName, config)
				if got := v.want(serverName, "/", status); got != resumed {
					t.Errorf("%s, %s: resumed: %v", tls.VersionName(version), serverName, got)
				}
				v.client.CloseIdleConnections()
			}
			made := &wallet{}
			try(one, "one.test", made, 200, false)
			// Who has the session does not show a certificate.
			try(nobody, "one.test", &wallet{made.session}, 200, true)
			try(nobody, "two.test", &wallet{made.session}, 400, false)
			try(nobody, "plain.test", &wallet{made.session}, 200, false)
			without := &wallet{}
			try(one, "plain.test", without, 200, false)
			try(one, "one.test", &wallet{without.session}, 200, false)
			try(nobody, "one.test", &wallet{without.session}, 400, false)
		}
	}
}

// A connection that was made before its host changed how it verifies clients is
// as one that was made under another host.
func TestClientsAreVerifiedAnewAfterAChange(t *testing.T) {
	t.Parallel()
	one, first := newClient(t, "one")
	two, second := newClient(t, "two")
	g := gatetest.Start(t, gatetest.Options{Features: verifying(), Timing: gatetest.Hasty(), Manifests: served("a", gatetest.StartEcho(t, "a")) +
		gatetest.TLSSecret("tls", gatetest.NewKeyPair(t, "tls", "a.test", "b.test")) + first + second +
		securedHost("a", "a.test") + securedHost("b", "b.test", "only-from: two")})
	for _, http2 := range []bool{false, true} {
		open := func(as client) *tlsVisit { return visitAs(t, g, http2, "a.test", as.config("a.test")) }
		before := open(one)
		before.want("a.test", "/", 200)
		g.Apply(securedHost("a", "a.test", "only-from: one"))
		before.want("a.test", "/", 421)
		open(one).want("a.test", "/", 200)
		between := open(one)
		between.want("a.test", "/", 200)
		g.Apply(securedHost("a", "a.test", "only-from: two"))
		between.want("a.test", "/", 421)
		open(one).want("a.test", "/", 400)
		open(two).want("a.test", "/", 200)
		g.Apply(securedHost("a", "a.test"))
		between.want("a.test", "/", 200)
	}
	// On the way out of a worker a request is routed after a jump.
	if err := g.Client.Draining(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	visitAs(t, g, false, "b.test", two.config("b.test")).want("b.test", "/", 200)
	visitAs(t, g, false, "a.test", two.config("a.test")).want("b.test", "/", 421)
}

// What can't be read as an authority lets no connection be made, rather than one
// without a word about certificates.
func TestNoConnectionWithoutAnAuthority(t *testing.T) {
	t.Parallel()
	one, _ := newClient(t, "one")
	g := gatetest.Start(t, gatetest.Options{Features: verifying(), Manifests: served("a", gatetest.StartEcho(t, "a")) +
		gatetest.TLSSecret("tls", gatetest.NewKeyPair(t, "tls", "a.test", "b.test")) +
		gatetest.TLSSecret("rubbish", gatetest.KeyPair{Certificate: "rubbish", Key: "rubbish"}) +
		securedHost("a", "a.test", "only-from: rubbish") + securedHost("b", "b.test")})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for name, want := range map[string]bool{"a.test": false, "b.test": true} {
			config := one.config(name)
			config.MinVersion, config.MaxVersion = version, version
			if _, err := shake(t, g, config); (err == nil) != want {
				t.Errorf("%s, %s: %v", name, tls.VersionName(version), err)
			}
		}
	}
	visitAs(t, g, true, "b.test", one.config("b.test")).want("a.test", "/", 421)
}
