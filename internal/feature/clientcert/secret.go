package clientcert

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"

	"github.com/headgate/headgate/internal/model"
)

// The keys of the Secret.
const (
	caKey  = "ca.crt"
	crlKey = "ca.crl"
)

// Bounds. A worker parses what it needs, while others' requests wait.
const (
	maxAuthorities = 1000
	maxLists       = 100
	maxBytes       = 1 << 20
	// maxNames is what TLS has room for: the subjects of all CAs are sent to clients.
	maxNames = 60000
)

// A secretData is what a Secret says, or why it can't be used.
type secretData struct {
	// content is certificates and revocation lists in PEM.
	content model.Content
	problem string
}

func readSecret(data map[string][]byte) (s secretData) {
	authorities, lists := data[caKey], data[crlKey]
	if len(authorities)+len(lists) > maxBytes {
		return secretData{problem: fmt.Sprintf("%s and %s have %d bytes: at most %d are allowed", caKey, crlKey, len(authorities)+len(lists), maxBytes)}
	}
	names := 0
	bundle, problem := readPEM(caKey, "CERTIFICATE", authorities, maxAuthorities, func(der []byte) error {
		certificate, err := x509.ParseCertificate(der)
		if err == nil {
			names += len(certificate.RawSubject) + 2
		}
		return err
	})
	switch {
	case problem == "" && bundle == nil:
		problem = "the Secret has no " + caKey + " with certificates in PEM"
	case problem == "" && names > maxNames:
		problem = fmt.Sprintf("the subjects of the CAs in %s have %d bytes: at most %d are allowed", caKey, names, maxNames)
	}
	if problem != "" {
		return secretData{problem: problem}
	}
	revoked, problem := readPEM(crlKey, "X509 CRL", lists, maxLists, func(der []byte) error {
		_, err := x509.ParseRevocationList(der)
		return err
	})
	switch {
	case problem != "":
		return secretData{problem: problem}
	case len(lists) > 0 && revoked == nil:
		// Who has such a key wants certificates to be refused.
		return secretData{problem: crlKey + " has no revocation list in PEM"}
	}
	return secretData{content: model.NewContent(append(bundle, revoked...))}
}

// readPEM keeps the blocks of one type, each once.
func readPEM(key, kind string, text []byte, most int, check func(der []byte) error) (kept []byte, problem string) {
	seen := map[string]bool{}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != kind || seen[string(block.Bytes)] {
			continue
		}
		if err := check(block.Bytes); err != nil {
			return nil, fmt.Sprintf("block %d in %s can't be read", len(seen)+1, key)
		}
		seen[string(block.Bytes)] = true
		kept = append(kept, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: block.Bytes})...)
	}
	if len(seen) > most {
		return nil, fmt.Sprintf("%s has %d blocks: at most %d are allowed", key, len(seen), most)
	}
	return kept, ""
}
