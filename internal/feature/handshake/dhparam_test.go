package handshake_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// rsaPair is a certificate that ciphers of DHE-RSA take.
func rsaPair(t *testing.T) headgatetest.KeyPair {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"a.test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return headgatetest.KeyPair{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	}
}

// group is a known group of OpenSSL's as a Secret. A new one takes up to minutes to find.
func group(t *testing.T, name string) string {
	t.Helper()
	text, err := exec.Command("openssl", "genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:"+name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return "---\nkind: Secret\napiVersion: v1\nmetadata: {name: dh}\nstringData:\n  dhparam.pem: |\n    " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n    ") + "\n"
}

// A cipher of DHE is agreed on with the parameters of the Secret, and with no other. The Secret is changed and removed.
func TestDHParam(t *testing.T) {
	t.Parallel()
	config := headgatetest.Config("ssl-dh-param: default/dh", "ssl-ciphers: DHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256")
	good := group(t, "ffdhe2048")
	g := headgatetest.Start(t, headgatetest.Options{Workers: 1, Timing: headgatetest.Hasty(), Manifests: config + good + headgatetest.TLSSecret("rsa", rsaPair(t)) +
		headgatetest.WithTLS(headgatetest.Ingress("a", "a.test", "/", "a"), "rsa a.test") + headgatetest.Service("a") +
		headgatetest.Endpoints("a", headgatetest.StartEcho(t, "a"))})
	check := func(what string, want bool) {
		t.Helper()
		command := exec.Command("openssl", "s_client", "-connect", headgatetest.Address(g.HTTPS), "-servername", "a.test", "-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256")
		text, err := command.CombinedOutput()
		if got := strings.Contains(string(text), "Cipher is DHE-RSA-AES128-GCM-SHA256"); got != want {
			t.Errorf("%s: DHE is agreed on: %v, %v\n%s", what, got, err, text)
		}
		g.Do(headgatetest.Request{Host: "a.test", Scheme: "https"}).WantStatus(t, 200)
	}
	check("with parameters", true)
	g.ApplyReloading("---\nkind: Secret\napiVersion: v1\nmetadata: {name: dh}\nstringData: {dhparam.pem: none}\n")
	check("with bad ones", false)
	g.ApplyReloading(good)
	check("with good ones again", true)
	// Debian's OpenSSL takes no fewer than 2048 bits.
	g.ApplyReloading(group(t, "modp_1536"))
	check("with too few bits", false)
	g.ApplyReloading(good)
	g.Delete(good)
	check("without the Secret", false)
	g.Apply(good)
	check("with the Secret again", true)
	g.ApplyReloading(headgatetest.Config("ssl-ciphers: DHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256"))
	check("without the key", false)
	for _, want := range []string{"must be DH PARAMETERS as PEM", "dh key too small", "Secret default/dh does not exist"} {
		if !strings.Contains(g.Log.String(), want) {
			t.Errorf("no finding says %q", want)
		}
	}
	if n := g.Value(g.Metrics.ReloadFailures); n > 0 {
		t.Errorf("%d reloads failed", n)
	}
}
