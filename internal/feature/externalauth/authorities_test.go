package externalauth_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/feature/externalauth"
	"github.com/headgate/headgate/internal/test/featuretest"
	"github.com/headgate/headgate/internal/test/headgatetest"
	"github.com/headgate/headgate/internal/test/pkitest"
)

// startSecure runs an auth service with a certificate.
func startSecure(t *testing.T, pair pkitest.Pair) *authService {
	t.Helper()
	j := &authService{}
	certificate, err := tls.X509KeyPair([]byte(pair.Chain), []byte(pair.Key))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.Handler(j))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	j.at = server.Listener.Addr().String()
	return j
}

// caFile is a file of the system's authorities.
func caFile(t *testing.T, certificates string) *string {
	t.Helper()
	// Not t.TempDir: the name must fit nginx.conf.
	dir, err := os.MkdirTemp("", "hg-ca-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "ca.crt")
	if certificates == "" {
		file = ""
	} else if err := os.WriteFile(file, []byte(certificates), 0o644); err != nil {
		t.Fatal(err)
	}
	return &file
}

// secureServices are auth services with different certificates. The first part of a
// host's name is that of its auth service.
type secureServices map[string]*authService

func startSecureServices(t *testing.T, ca *pkitest.Authority) secureServices {
	t.Helper()
	expired := &x509.Certificate{NotAfter: time.Now().Add(-time.Minute)}
	self := headgatetest.NewKeyPair(t, "self.example", "self.example")
	return secureServices{
		"good":     startSecure(t, ca.Issue("good.example")),
		"dot":      startSecure(t, ca.Issue("dot.example")),
		"wrong":    startSecure(t, ca.Issue("good.example")),
		"expired":  startSecure(t, ca.IssueAs(expired, "expired.example")),
		"self":     startSecure(t, pkitest.Pair{Chain: self.Certificate, Key: self.Key}),
		"$unnamed": startSecure(t, ca.Issue("good.example")),
		"inside":   startSecure(t, pkitest.Pair{Chain: self.Certificate, Key: self.Key}),
	}
}

func (s secureServices) ingresses() string {
	var b strings.Builder
	for name, service := range s {
		url := "https://" + name + ".example:" + service.port() + "/check"
		switch name {
		case "dot":
			url = "https://dot.example.:" + service.port() + "/check"
		case "$unnamed":
			name, url = "unnamed", "https://"+service.at+"/check"
		case "inside":
			b.WriteString(headgatetest.Service("inside") + headgatetest.Endpoints("inside", service.at))
			url = "https://inside.default.svc.cluster.local:80/check"
		}
		b.WriteString(guardedBy(name, url))
	}
	return b.String()
}

func (s secureServices) names(t *testing.T) []string {
	var list []string
	for name := range s {
		list = append(list, name+".example")
	}
	return list
}

// want fails the test unless the hosts with these auth services answer 200, and all
// others deny without an error of Headgate's own making.
func (s secureServices) want(t *testing.T, g *headgatetest.Instance, when string, good ...string) {
	t.Helper()
	for name, service := range s {
		host := strings.TrimPrefix(name, "$")
		service.take()
		r, want := g.Get(host+".test", "/"), 500
		for _, one := range good {
			if one == name {
				want = 200
			}
		}
		if name == "$unnamed" && want != 200 {
			want = 503
		}
		if r.Status != want || (r.Echo != nil) != (want == 200) {
			t.Errorf("%s: %s: status %d, backend %v, want %d", when, host, r.Status, r.Echo != nil, want)
		}
		if asked := service.take(); (len(asked) > 0) != (want == 200) {
			t.Errorf("%s: %s: %d requests reached the service", when, host, len(asked))
		} else if want == 200 && name == "dot" && asked[0].Host != "dot.example.:"+service.port() && asked[0].Host != "dot.example." {
			t.Errorf("%s: %s: asked as %q", when, host, asked[0].Host)
		}
	}
}

func caKey(text string) string { return headgatetest.Config("auth-url-ca: " + text) }

// An auth service outside the cluster must have a certificate for its name, of an
// authority of the system, or of the key's.
func TestServiceIsVerified(t *testing.T) {
	t.Parallel()
	ca, other := pkitest.New(t), pkitest.New(t)
	services := startSecureServices(t, ca)
	g := headgatetest.Start(t, headgatetest.Options{
		Names: names(t, services.names(t)...), Authorities: caFile(t, pkitest.PEM(ca.Root)),
		Manifests: app(t) + services.ingresses(),
	})
	services.want(t, g, "CAs of the system", "good", "dot", "inside")
	for _, why := range []string{"upstream SSL certificate does not match", "certificate has expired", "self-signed certificate"} {
		if !strings.Contains(g.Log.String(), why) {
			t.Errorf("the log does not have %q", why)
		}
	}
	if n := g.Value(g.Metrics.Findings.WithLabelValues("InvalidValue")); n != 1 {
		t.Errorf("%d findings, want that about the address", n)
	}

	g.ApplyReloading(caKey(pkitest.PEM(other.Root)))
	services.want(t, g, "another CA in the key", "inside")
	g.ApplyReloading(caKey("Comment\n" + pkitest.PEM(other.Root) + pkitest.PEM(ca.Root) + pkitest.PEM(ca.Root)))
	services.want(t, g, "the CA in the key", "good", "dot", "inside")
	g.ApplyReloading(caKey("off"))
	services.want(t, g, "off", "good", "dot", "wrong", "expired", "self", "$unnamed", "inside")
	if n := g.Value(g.Metrics.Findings.WithLabelValues("InvalidValue")); n != len(services)-1 {
		t.Errorf("off: %d findings, want one for each auth service outside", n)
	}
	g.Apply(caKey("-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----"))
	services.want(t, g, "an invalid key", "good", "dot", "inside")
}

// Without the system's CAs nothing is verified, and nothing is let in.
func TestSystemWithoutAuthorities(t *testing.T) {
	t.Parallel()
	ca := pkitest.New(t)
	services := startSecureServices(t, ca)
	g := headgatetest.Start(t, headgatetest.Options{
		Names: names(t, services.names(t)...), Authorities: caFile(t, ""),
		Manifests: app(t) + services.ingresses(),
	})
	for name := range services {
		want := 503
		if name == "inside" {
			want = 200
		}
		g.Get(strings.TrimPrefix(name, "$")+".test", "/").WantStatus(t, want)
	}
	g.ApplyReloading(caKey(pkitest.PEM(ca.Root)))
	services.want(t, g, "the CA in the key", "good", "dot", "inside")
}

const knownCA = `-----BEGIN CERTIFICATE-----
MIIBejCCASGgAwIBAgIUe43sIzTmEgpjEret6uyUmwPip5IwCgYIKoZIzj0EAwIw
EjEQMA4GA1UEAwwHVGVzdCBDQTAgFw0yNjExMjIxNzQ0NTJaGA8yMTI2MTAyOTE3
NDQ1MlowEjEQMA4GA1UEAwwHVGVzdCBDQTBZMBMGByqGSM49AgEGCCqGSM49AwEH
A0IABOTYCDuRtRIJkcEIDZXKLSMIhXkFj8q9WaxA+nnOh99voS1ya0nxHaaHJ+lj
AMcBGmuflv18MHIaAcO/BzzFAo+jUzBRMB0GA1UdDgQWBBS4DueLdc2fGrWr8oOJ
1X2QD0qGmzAfBgNVHSMEGDAWgBS4DueLdc2fGrWr8oOJ1X2QD0qGmzAPBgNVHRMB
Af8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIFwk+ooKbeJ9mHgqgTPkG+18AYBG
2BnPhNCMCTOFpM7ZAiBkxy2eFdSjgfUuPe/enDdu5OKcn37ZzrdJM4F7SpIc8Q==
-----END CERTIFICATE-----
`

// FuzzAuthorities looks for text that gets into the file, or panics.
func FuzzAuthorities(f *testing.F) {
	for _, text := range []string{"off", "", "-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----", "-----BEGIN X", knownCA} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		route, problems := featuretest.Read(externalauth.Feature(), map[string]string{"auth-url": "https://auth.example/x"},
			map[string]string{"auth-url-ca": text}, feature.Objects{})
		off := strings.EqualFold(strings.TrimSpace(text), "off")
		if verified := route.Variant.Check.String() == "verified"; verified == off {
			t.Errorf("verified %v, %+v", verified, problems)
		}
	})
}
