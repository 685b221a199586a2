package backendprotocol

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/guard"
	"github.com/headgate/headgate/internal/model"
)

// The keys of the Secret.
const (
	certificateKeyOf = "tls.crt"
	privateKeyOf     = "tls.key"
	caKey            = "ca.crt"
)

// Bounds. NGINX reads the CAs again for each location of each profile with them, and the
// certificate for each connection.
const (
	maxAuthorities  = 50
	maxCertificates = 16
	maxBytes        = 128 << 10
	maxKeyBytes     = 16 << 10
)

// A secretData is what a Secret says, or why it can't be used.
type secretData struct {
	// authorities are certificates in PEM, and certificate is a chain with its key. They have
	// no name if the Secret has none.
	authorities, certificate model.Content
	problem                  string
}

// readSecret checks all that it keeps: NGINX rejects its whole configuration with CAs that it
// can't read.
func readSecret(data map[string][]byte) (s secretData) {
	ca, chain, key := data[caKey], data[certificateKeyOf], data[privateKeyOf]
	if len(ca)+len(chain)+len(key) == 0 {
		s.problem = fmt.Sprintf("the Secret has no %s, and no %s with %s", caKey, certificateKeyOf, privateKeyOf)
		return s
	}
	var bundle []byte
	if len(ca) > 0 {
		if bundle, _, s.problem = readCertificates(caKey, ca, maxAuthorities); s.problem != "" {
			return s
		}
		s.authorities = model.NewContent(bundle)
	}
	if len(chain)+len(key) > 0 {
		pair, problem := readPair(chain, bundle, key)
		if s.problem = problem; problem != "" {
			return s
		}
		s.certificate = model.NewContent(pair)
	}
	return s
}

// readCertificates returns the certificates alone, each once, and the first one.
func readCertificates(name string, text []byte, most int) (bundle []byte, first *x509.Certificate, problem string) {
	if len(text) > maxBytes {
		return nil, nil, fmt.Sprintf("%s has %d bytes: at most %d are allowed", name, len(text), maxBytes)
	}
	seen := map[string]bool{}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" || seen[string(block.Bytes)] {
			continue
		}
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, nil, fmt.Sprintf("certificate %d in %s can't be read", len(seen)+1, name)
		}
		if seen[string(block.Bytes)] = true; first == nil {
			first = parsed
		}
		bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	switch {
	case first == nil:
		return nil, nil, name + " contains no PEM certificate"
	case len(seen) > most:
		return nil, nil, fmt.Sprintf("%s contains %d certificates: at most %d are allowed", name, len(seen), most)
	}
	return bundle, first, ""
}

// readPair returns the chain with its key behind it, and the CAs between them, as
// ingress-nginx sends them: one may have issued the certificate. Problems never quote the key.
func readPair(chain, authorities, key []byte) (pair []byte, problem string) {
	if len(chain) == 0 || len(key) == 0 || len(key) > maxKeyBytes {
		return nil, fmt.Sprintf("%s and %s must both be there, the key with at most %d bytes", certificateKeyOf, privateKeyOf, maxKeyBytes)
	}
	pair, leaf, problem := readCertificates(certificateKeyOf, chain, maxCertificates)
	if problem != "" {
		return nil, problem
	}
	if err := guard.CheckKey(leaf.PublicKey); err != nil {
		return nil, "the first certificate in " + certificateKeyOf + ": " + err.Error()
	}
	block := privateKey(key)
	if block == nil {
		return nil, privateKeyOf + " contains no PEM private key"
	}
	private := pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})
	if _, err := tls.X509KeyPair(pair, private); err != nil {
		return nil, fmt.Sprintf("%s is not the key of the first certificate in %s, or can't be read", privateKeyOf, certificateKeyOf)
	}
	return bytes.Join([][]byte{pair, authorities, private}, nil), ""
}

// privateKey is the first one.
func privateKey(text []byte) *pem.Block {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "PRIVATE KEY" || strings.HasSuffix(block.Type, " PRIVATE KEY") {
			return block
		}
	}
	return nil
}
