package dataplane_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/test/headgatetest"
)

// An authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func newKey(t *testing.T, rsaKey bool) crypto.Signer {
	t.Helper()
	var key crypto.Signer
	var err error
	if rsaKey {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sign makes a certificate for a key, of an authority if it has no names; a
// without certificate signs it by itself.
func (a authority) sign(t *testing.T, cn string, key crypto.Signer, names ...string) authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: cn}, DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: len(names) == 0,
	}
	parent, signer := a.certificate, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{made, key}
}

// pair is the key with the certificate and those above it.
func (a authority) pair(t *testing.T, above ...authority) headgatetest.KeyPair {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	var chain strings.Builder
	for _, one := range append([]authority{a}, above...) {
		chain.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: one.certificate.Raw}))
	}
	return headgatetest.KeyPair{Certificate: chain.String(), Key: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))}
}

// Hosts with keys of either kind are served beside each other, in all versions,
// with the whole chain, so that a client that knows only the root is content.
func TestKindsOfCertificates(t *testing.T) {
	t.Parallel()
	root := authority{}.sign(t, "root", newKey(t, true))
	middle := root.sign(t, "middle", newKey(t, false))
	roots := x509.NewCertPool()
	roots.AddCert(root.certificate)
	rsaPair := middle.sign(t, "rsa", newKey(t, true), "rsa.test", "*.rsa.test").pair(t, middle)
	ecdsaPair := middle.sign(t, "ecdsa", newKey(t, false), "ecdsa.test", "*.ecdsa.test").pair(t, middle)
	ingress := func(name string) string {
		return headgatetest.WithTLS(headgatetest.Ingress(name, name+".test", "/", "a"), name+" "+name+".test") +
			headgatetest.WithTLS(headgatetest.Ingress("any-"+name, "*."+name+".test", "/", "a"), name+" *."+name+".test")
	}
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("a", headgatetest.StartEcho(t, "a")) +
		headgatetest.TLSSecret("rsa", rsaPair) + headgatetest.TLSSecret("ecdsa", ecdsaPair) + ingress("rsa") + ingress("ecdsa")})
	for _, name := range strings.Fields("rsa.test ecdsa.test x.rsa.test y.ecdsa.test") {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			connection := tls.Client(headgatetest.Dial(t, g.HTTPS), &tls.Config{ServerName: name, RootCAs: roots, MinVersion: version, MaxVersion: version})
			if err := connection.Handshake(); err != nil {
				t.Errorf("%s, %s: %v", name, tls.VersionName(version), err)
			} else if n := len(connection.ConnectionState().PeerCertificates); n != 2 {
				t.Errorf("%s: a chain of %d", name, n)
			}
		}
	}
	// A client that can't verify the kind of key gets none.
	if got := agreed(t, g, "rsa.test", weak); got != 0 {
		t.Errorf("cipher %x for an RSA key", got)
	}
}

const shownInPython = `
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30) as plain:
    with context.wrap_socket(plain, server_hostname=sys.argv[2]) as connection:
        print(ssl.DER_cert_to_PEM_cert(connection.getpeercert(True)))
`

// Go's client cuts the dot at the end of a name, and others don't.
func TestDotAfterTheServerName(t *testing.T) {
	t.Parallel()
	pair := headgatetest.NewKeyPair(t, "dotted", "a.test")
	g := headgatetest.Start(t, headgatetest.Options{Manifests: served("a", headgatetest.StartEcho(t, "a")) + headgatetest.TLSSecret("tls", pair) +
		headgatetest.Config("ssl-reject-handshake: true") + securedHost("a", "a.test")})
	for _, name := range []string{"a.test.", "A.TEST."} {
		out, err := exec.CommandContext(t.Context(), "python3", "-c", shownInPython, strconv.Itoa(int(g.HTTPS)), name).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != strings.TrimSpace(pair.Certificate) {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}
