package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// A pki is a certificate authority that lives as long as the cluster, with
// its certificates and kubeconfigs as files in dir.
type pki struct {
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

// An identity is one certificate, good for clients and servers.
type identity struct {
	file  string // the name of its files, without .crt, .key and .kubeconfig
	name  string
	group string
	dns   []string
	ips   []net.IP
}

// identities are those of all components, and the administrator's.
func identities() []identity {
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(nodeAddress), net.ParseIP(apiServiceAddress)}
	local := []string{"localhost"}
	api := []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	}
	return []identity{
		{file: "apiserver", name: "kube-apiserver", dns: api, ips: ips},
		{file: "apiserver-kubelet-client", name: "kube-apiserver-kubelet-client", group: "system:masters"},
		{file: "admin", name: "admin", group: "system:masters"},
		{file: "kube-controller-manager", name: "system:kube-controller-manager", dns: local, ips: ips},
		{file: "kube-scheduler", name: "system:kube-scheduler", dns: local, ips: ips},
		{file: "kube-proxy", name: "system:kube-proxy"},
		{file: "kubelet", name: "system:node:" + nodeName, group: "system:nodes", dns: []string{nodeName}, ips: ips},
	}
}

// newPKI writes everything that identities names, and the key that signs
// service account tokens.
func newPKI(dir string) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making certificates: %w", err)
	}
	p := &pki{dir: dir}
	if err := p.authority(); err != nil {
		return nil, fmt.Errorf("making the certificate authority: %w", err)
	}
	for _, id := range identities() {
		if err := p.issue(id); err != nil {
			return nil, fmt.Errorf("making the certificate of %s: %w", id.file, err)
		}
	}
	if err := p.serviceAccountKey(); err != nil {
		return nil, fmt.Errorf("making the service account key: %w", err)
	}
	return p, nil
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

func (p *pki) template(id identity) *x509.Certificate {
	p.serial++
	var groups []string
	if id.group != "" {
		groups = []string{id.group}
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(p.serial),
		Subject:      pkix.Name{CommonName: id.name, Organization: groups},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		DNSNames:     id.dns,
		IPAddresses:  id.ips,
	}
}

func (p *pki) authority() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t := p.template(identity{name: "cluster-ca"})
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage |= x509.KeyUsageCertSign
	t.ExtKeyUsage = nil
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return err
	}
	p.key = key
	if p.cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	return p.write("ca", der, key)
}

func (p *pki) issue(id identity) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, p.template(id), p.cert, key.Public(), p.key)
	if err != nil {
		return err
	}
	if err := p.write(id.file, der, key); err != nil {
		return err
	}
	return os.WriteFile(p.path(id.file+".kubeconfig"), []byte(p.kubeconfig(id.file)), 0o600)
}

// write writes file.crt and file.key.
func (p *pki) write(file string, der []byte, key *ecdsa.PrivateKey) error {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := p.writePEM(file+".crt", "CERTIFICATE", der); err != nil {
		return err
	}
	return p.writePEM(file+".key", "PRIVATE KEY", private)
}

func (p *pki) writePEM(file, kind string, der []byte) error {
	return os.WriteFile(p.path(file), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func (p *pki) serviceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := p.writePEM("sa.key", "PRIVATE KEY", private); err != nil {
		return err
	}
	return p.writePEM("sa.pub", "PUBLIC KEY", public)
}

func (p *pki) kubeconfig(file string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: test
  cluster: {server: %q, certificate-authority: %q}
users:
- name: %[3]s
  user: {client-certificate: %[4]q, client-key: %[5]q}
contexts:
- name: test
  context: {cluster: test, user: %[3]s}
current-context: test
`, apiURL, p.path("ca.crt"), file, p.path(file+".crt"), p.path(file+".key"))
}
