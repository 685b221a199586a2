package compat_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/unit/link"
	"github.com/headgate/headgate/test/e2e/clustertest"
)

// isSplit reports whether the cases are to be answered by a control and an edge: HEADGATE_SPLIT=1.
func isSplit() bool { return os.Getenv("HEADGATE_SPLIT") == "1" }

// controlHealthz is the health check of the control, and edgeAddress where edges get units.
const (
	controlHealthz = clustertest.NodeAddress + ":10354"
	edgeAddress    = "127.0.0.1:8444"
)

// halves are the commands and flags of a control and an edge.
func (c *controller) halves() (control, edge []string) {
	control = []string{
		"control", "--run-dir", c.file("control"), "--healthz-port", "10354", "--profiling=false", "--edge-address", edgeAddress,
		"--edge-certificate", c.file("control.crt"), "--edge-key", c.file("control.key"), "--edge-ca", c.file("ca.crt"),
	}
	edge = []string{
		"edge", "--control-address", edgeAddress, "--control-ca", c.file("ca.crt"),
		"--control-certificate", c.file("edge.crt"), "--control-key", c.file("edge.key"),
	}
	return control, edge
}

// issue makes the certificates of both.
func (c *controller) issue(t *testing.T) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, kind string, der []byte) {
		t.Helper()
		must(os.WriteFile(c.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	}
	writeKey := func(name string, key any) {
		t.Helper()
		der, err := x509.MarshalPKCS8PrivateKey(key)
		must(err)
		write(name, "PRIVATE KEY", der)
	}
	const validity = 24 * time.Hour
	now := time.Now()
	authority, err := link.NewAuthority(now, now.Add(validity))
	must(err)
	write("ca.crt", "CERTIFICATE", authority.Certificate.Raw)
	control, err := authority.Server(now, validity)
	must(err)
	write("control.crt", "CERTIFICATE", control.Leaf.Raw)
	writeKey("control.key", control.PrivateKey)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	must(err)
	request, err := x509.ParseCertificateRequest(der)
	must(err)
	edge, err := authority.Edge(request, link.Identity{Name: "edge"}, now, validity)
	must(err)
	write("edge.crt", "CERTIFICATE", edge.Raw)
	writeKey("edge.key", key)
}
