package dataplane_test

import (
	"crypto/tls"
	"io"
	"maps"
	"net/http"
	"net/url"
	"testing"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/pkitest"
)

// verifying are the features with one more, by which a host's clients need a
// certificate of the authority in the Secret that "only-from" names.
func verifying() []feature.Feature {
	authority := feature.Setting[feature.ObjectName]{
		Annotation: "only-from", Parse: feature.Object, Refers: feature.Secret, OnInvalid: feature.Deny,
		Scope: feature.ScopeHost, Merge: feature.MergeTogether, Leads: true,
	}
	return append(all.Features(), feature.Feature{
		Name: "only_from", Settings: []feature.AnySetting{authority},
		Host: func(v feature.Values, out *feature.HostOut) {
			if secret, ok := feature.FromSecret(v, authority, "", maps.Clone[map[string][]byte]); ok {
				ca := model.NewContent(secret["tls.crt"])
				out.TLS, out.Policy, out.Contents = ca.Name, ca.Name, append(out.Contents, ca)
			}
		},
		Lua: featuretest.Module("only_from", `
local requests = require "headgate.request"
local ssl = require "ngx.ssl"
local units = require "headgate.units"
return {
    ssl_client_hello = function(ca, connection)
        connection.verified_by = ca
    end,
    ssl_certificate = function(ca, connection)
        local chain = assert(ssl.parse_pem_cert(assert(units.content(ca, connection.revision))))
        assert(ssl.verify_client(chain, 1))
    end,
    rewrite = function(ca, request)
        local connection = request.connection
        if not connection or connection.verified_by ~= ca then
            return requests.finish(request, 421)
        end
        if ngx.var.ssl_client_verify ~= "SUCCESS" then
            return requests.finish(request, 403)
        end
    end,
}`),
	})
}

// certified makes an authority, in a Secret of that name, and a client's certificate
// of it.
func certified(t *testing.T, name string) (client tls.Certificate, secret string) {
	t.Helper()
	authority := pkitest.New(t)
	pair := authority.Issue(name)
	client, err := tls.X509KeyPair([]byte(pair.Chain), []byte(pair.Key))
	if err != nil {
		t.Fatal(err)
	}
	return client, headgatetest.TLSSecret(name, headgatetest.KeyPair{Certificate: pkitest.PEM(authority.Root), Key: pair.Key})
}

// A feature can verify the clients of a host in the handshake, and refuse requests over
// connections that were made for hosts that verify otherwise.
func TestFeaturesTakePartInHandshakes(t *testing.T) {
	t.Parallel()
	one, first := certified(t, "one")
	two, second := certified(t, "two")
	g := headgatetest.Start(t, headgatetest.Options{Features: verifying(), Timing: headgatetest.Hasty(), Manifests: served("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.TLSSecret("tls", headgatetest.NewKeyPair(t, "tls", "one.test", "same.test", "two.test", "plain.test", "weak.test")) + first + second +
		securedHost("one", "one.test", "only-from: one") + securedHost("same", "same.test", "only-from: one") +
		securedHost("two", "two.test", "only-from: two", "ssl-ciphers: "+weakName) +
		securedHost("plain", "plain.test") + securedHost("weak", "weak.test", "ssl-ciphers: "+weakName)})
	// ask makes a connection for a name and asks for a host over it.
	ask := func(http2 bool, name, host string, config *tls.Config) (int, tls.ConnectionState) {
		t.Helper()
		client := g.NewClient(http2)
		defer client.CloseIdleConnections()
		config = config.Clone()
		config.ServerName, config.InsecureSkipVerify = name, true
		client.Transport.(*http.Transport).TLSClientConfig = config
		answer, err := client.Do(&http.Request{URL: &url.URL{Scheme: "https", Host: name, Path: "/"}, Host: host})
		if err != nil {
			t.Fatalf("%s over a connection for %s: %v", host, name, err)
		}
		defer answer.Body.Close()
		// The session comes with the answer.
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, *answer.TLS
	}
	with := func(certificate tls.Certificate) *tls.Config {
		return &tls.Config{GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil }}
	}
	const same = ""
	for _, c := range []struct {
		name, host string
		client     *tls.Config
		want       int
	}{
		{"one.test", same, with(one), 200},
		{"one.test", same, with(two), 403},
		{"one.test", same, &tls.Config{}, 403},
		{"two.test", same, with(two), 200},
		{"two.test", same, with(one), 403},
		{"plain.test", same, &tls.Config{}, 200},
		{"one.test", "same.test", with(one), 200},
		{"one.test", "two.test", with(one), 421},
		{"two.test", "one.test", with(two), 421},
		{"plain.test", "one.test", with(one), 421},
		{"weak.test", "one.test", with(one), 421},
		{"one.test", "plain.test", &tls.Config{}, 200},
	} {
		if c.host == same {
			c.host = c.name
		}
		for _, http2 := range []bool{false, true} {
			if got, _ := ask(http2, c.name, c.host, c.client); got != c.want {
				t.Errorf("%s over a connection for %s, HTTP/2 %v: %d, want %d", c.host, c.name, http2, got, c.want)
			}
		}
	}
	g.Get("one.test", "/").WantStatus(t, 308)

	// A host may have policies of several features.
	old := with(two)
	old.MaxVersion = tls.VersionTLS12
	if _, state := ask(false, "two.test", "two.test", old); state.CipherSuite != weak {
		t.Errorf("cipher %x, want %x", state.CipherSuite, weak)
	}
	// A session that is resumed remembers who the client was.
	kept := with(one)
	kept.ClientSessionCache = &wallet{}
	ask(false, "one.test", "one.test", kept)
	if got, state := ask(false, "one.test", "one.test", kept); got != 200 || !state.DidResume {
		t.Errorf("status %d, resumed %v; want 200 of a resumed session", got, state.DidResume)
	}

	// What goes wrong ends the handshakes of this host alone.
	reloads := g.Value(g.Metrics.Reloads)
	bad := headgatetest.TLSSecret("one", headgatetest.KeyPair{Certificate: "no certificate", Key: "no key"})
	g.Apply(bad)
	for name, fine := range map[string]bool{"one.test": false, "two.test": true, "plain.test": true} {
		if _, err := shake(t, g, &tls.Config{ServerName: name}); (err == nil) != fine {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := g.Value(g.Metrics.Reloads); n != reloads {
		t.Errorf("%d reloads", n-reloads)
	}
}
