package dataplane_test

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// ownedBy are the objects of manifests in a namespace, all of one age.
func ownedBy(t *testing.T, namespace string, year int, manifests ...string) []metav1.Object {
	t.Helper()
	objects := headgatetest.Decode(t, strings.Join(manifests, ""))
	for _, object := range objects {
		object.SetNamespace(namespace)
		object.SetCreationTimestamp(metav1.NewTime(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)))
	}
	return objects
}

// TestHostOwnership has a namespace touch the hosts of an older one: while hosts belong to
// namespaces, the owner's answers, headers and certificates stay what they were alone. What
// each attack does while hosts are shared shows that it is one.
func TestHostOwnership(t *testing.T) {
	t.Parallel()
	headgatetest.Long(t)
	users := "---\nkind: Secret\napiVersion: v1\nmetadata: {name: users}\nstringData:\n  auth: |\n    user:{PLAIN}x\n"
	base := func(namespace, name string) string {
		pair := headgatetest.NewKeyPair(t, namespace, "*.corp.test", "*.other.test", "a.test")
		return users + headgatetest.TLSSecret("tls", pair) + headgatetest.Service("echo") + headgatetest.Endpoints("echo", headgatetest.StartEcho(t, name))
	}
	ingress := headgatetest.Ingress
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Config("host-ownership: namespace")})
	g.ApplyObjects(ownedBy(t, "owner", 2020,
		base("owner", "owner's"),
		ingress("guarded", "a.test", "/", "echo", "auth-type: basic", "auth-secret: users", `server-alias: alias.test, ~^rx\d+\.net$`),
		strings.ReplaceAll(ingress("open", "a.test", "/api", "echo"), "Prefix", "Exact"),
		headgatetest.WithTLS(ingress("wild", "*.corp.test", "/", "echo", "auth-type: basic", "auth-secret: users"), "tls *.corp.test"),
		ingress("bare", "login.other.test", "/", "echo"),
		ingress("hostless", "", "/", "echo"),
	)...)
	g.ApplyObjects(ownedBy(t, "other", 2024, base("other", "other's"))...)

	visit := func() string {
		var b strings.Builder
		for _, host := range []string{"a.test", "alias.test", "www.a.test", "login.corp.test", "pay.corp.test", "login.other.test", "rx1.net", "unknown.test"} {
			for _, path := range []string{"/", "/secret", "/api", "/api/secret", "/apisecret"} {
				for _, header := range []http.Header{nil, {"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("user:x"))}}} {
					scheme := "http"
					if header != nil {
						scheme = "https"
					}
					client := g.NewClient(false)
					// Ciphers of TLS 1.3 are not of hosts.
					client.Transport.(*http.Transport).TLSClientConfig.MaxVersion = tls.VersionTLS12
					r, err := g.Try(client, headgatetest.Request{Scheme: scheme, Host: host, Path: path, Header: header})
					client.CloseIdleConnections()
					fmt.Fprintf(&b, "%s://%s%s: %d %t", scheme, host, path, r.Status, err == nil)
					for _, name := range []string{"Location", "Www-Authenticate", "Strict-Transport-Security", "Set-Cookie", "Content-Type"} {
						fmt.Fprintf(&b, " %s=%q", name, r.Header[name])
					}
					if r.Echo != nil {
						fmt.Fprintf(&b, " by %s", r.Echo.Backend)
					}
					if r.TLS != nil {
						fmt.Fprintf(&b, " certificate of %q, %s", r.TLS.PeerCertificates[0].Subject.CommonName, tls.CipherSuiteName(r.TLS.CipherSuite))
					}
					b.WriteString("\n")
				}
			}
		}
		return b.String()
	}
	alone := visit()
	const loses = " (the older one wins in any case)"
	for _, attack := range []struct{ about, ingress string }{
		{"one of the same name, host and path" + loses, ingress("guarded", "a.test", "/", "echo")},
		{"use-regex (A3)", ingress("x", "a.test", "/zzz", "echo", "use-regex: true")},
		{"an expression that takes all (A8)", ingress("x", "a.test", "/(.*)()()()()()", "echo", "use-regex: true")},
		{"a canary (A8)", ingress("x", "a.test", "/", "echo", "canary: true", "canary-weight: 100")},
		{"a path", ingress("x", "a.test", "/secret", "echo")},
		{"a host below a wildcard (A9)", ingress("x", "login.corp.test", "/", "echo")},
		{"an alias below a wildcard (A9)", ingress("x", "mine.test", "/", "echo", "server-alias: pay.corp.test")},
		{"a host that is an alias", ingress("x", "alias.test", "/", "echo")},
		{"a TLS section", headgatetest.WithTLS(ingress("x", "a.test", "/zzz", "echo"), "tls a.test")},
		{"an Exact path", strings.ReplaceAll(ingress("x", "a.test", "/secret", "echo"), "Prefix", "Exact")},
		{"a rule for all hosts", ingress("x", "", "/secret", "echo")},
		{"an expression for aliases" + loses, ingress("x", "mine.test", "/", "echo", "server-alias: ~^rx.*")},
		{"an expression that is an alias" + loses, ingress("x", "mine.test", "/", "echo", `server-alias: ~^rx\d+\.net$`)},
		{"ciphers", ingress("x", "a.test", "/zzz", "echo", "ssl-ciphers: AES256-SHA")},
		{"app-root", ingress("x", "login.other.test", "/zzz", "echo", "app-root: /theirs")},
		{"a redirect of www", ingress("x", "a.test", "/zzz", "echo", "from-to-www-redirect: true")},
		{"a default backend", strings.Replace(ingress("x", "a.test", "/secret", "echo"), "spec:\n", "spec:\n  defaultBackend: {service: {name: echo, port: {number: 80}}}\n", 1)},
		{"a wildcard above", headgatetest.WithTLS(ingress("x", "*.other.test", "/", "echo"), "tls *.other.test")},
	} {
		g.ApplyObjects(ownedBy(t, "other", 2024, attack.ingress)...)
		if now := visit(); now != alone {
			t.Errorf("%s: %s", attack.about, firstDifference(alone, now))
		}
		g.Apply(headgatetest.Config("host-ownership: shared"))
		if visit() == alone != strings.HasSuffix(attack.about, loses) {
			t.Errorf("%s: whether it changes something while hosts are shared is not as said", attack.about)
		}
		g.Apply(headgatetest.Config("host-ownership: namespace"))
		if now := visit(); now != alone {
			t.Errorf("%s, after the key changed back: %s", attack.about, firstDifference(alone, now))
		}
	}
}

func firstDifference(before, after string) string {
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	for i := range min(len(was), len(is)) {
		if was[i] != is[i] {
			return "from\n" + was[i] + "\nto\n" + is[i]
		}
	}
	return ""
}
