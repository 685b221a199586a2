package serveralias_test

import (
	"testing"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// TestCertificates: an alias of each kind shows the certificate of its host, or that of the TLS section
// of its Ingress, for the names that it is for, and requests for these are redirected to https.
func TestCertificates(t *testing.T) {
	t.Parallel()
	shop := headgatetest.NewKeyPair(t, "shop", "shop.test", "*.shop.test", "one.example.net")
	wild := headgatetest.NewKeyPair(t, "wild", "*.wild.test")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: headgatetest.Service("web") + headgatetest.Endpoints("web", headgatetest.StartEcho(t, "web")) +
		headgatetest.TLSSecret("shop", shop) + headgatetest.TLSSecret("wild", wild) +
		headgatetest.WithTLS(headgatetest.Ingress("shop", "shop.test", "/", "web", `server-alias: ~^[a-z]+\.shop\.test$, one.example.*, ~^.+\.deep\.shop\.test$`), "shop shop.test") +
		headgatetest.WithTLS(headgatetest.Ingress("other", "other.test", "/", "web", "server-alias: red.wild.test, red.none.test"), "wild *.wild.test")})
	for name, want := range map[string]string{
		"blue.shop.test": "shop", "one.example.net": "shop", "one.example.org": "", "a.deep.shop.test": "", "red.wild.test": "wild", "red.none.test": "", "other.test": "",
	} {
		leaf := g.Do(headgatetest.Request{Scheme: "https", Host: name}).WantStatus(t, 200).TLS.PeerCertificates[0]
		if got := leaf.Subject.CommonName; got != want && (want != "" || got == "shop" || got == "wild") {
			t.Errorf("%s: the certificate of %q, want that of %q", name, got, want)
		}
		status := 200
		if want != "" || name == "other.test" {
			status = 308
		}
		g.Get(name, "/").WantStatus(t, status)
	}
}
