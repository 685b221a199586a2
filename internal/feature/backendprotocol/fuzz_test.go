package backendprotocol

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/pkitest"
)

// FuzzSecret: NGINX gets nothing of a Secret but certificates that can be read, and one key.
func FuzzSecret(f *testing.F) {
	good := pkitest.PEM(pkitest.New(f).Root)
	f.Add([]byte(good), []byte(""), []byte(""))
	f.Add([]byte("x"+good+"\ny;\n}\n"+good), []byte(good), []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte(""), []byte(""))
	f.Fuzz(func(t *testing.T, ca, chain, key []byte) {
		s := readSecret(map[string][]byte{caKey: ca, certificateKeyOf: chain, privateKeyOf: key})
		if s.problem != "" {
			if strings.Contains(s.problem, string(key)) && len(key) > 20 {
				t.Errorf("the problem %q quotes the key", s.problem)
			}
			return
		}
		for rest := []byte(s.authorities.Bytes); len(rest) > 0; {
			var block *pem.Block
			before := rest
			if block, rest = pem.Decode(rest); block == nil || !strings.HasPrefix(string(before), "-----BEGIN CERTIFICATE-----\n") {
				t.Fatalf("the CAs have other text: %q", before)
			}
			if _, err := x509.ParseCertificate(block.Bytes); err != nil {
				t.Error(err)
			}
		}
	})
}

// FuzzValues: what is taken is of the closed lists, or a name.
func FuzzValues(f *testing.F) {
	for _, seed := range []string{"HIGH:!aNULL", "DEFAULT", "!aNULL", "TLSv1.2 TLSv1.3", "a.test", ".test", "$host", "default/one", "", "GRPCS"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if list, err := parseCiphers(text); err == nil && len(list) > 0 {
			var words []string
			for _, index := range list {
				words = append(words, cipherWords()[index])
			}
			if strings.Join(words, ":") != text || strings.HasPrefix(words[0], "!") {
				t.Errorf("%q became %q", text, words)
			}
		}
		if set, err := parseVersions(text); err == nil && (set == 0 || set&^bothVersions != 0) {
			t.Errorf("%q became %v", text, set)
		}
		if name, err := parseName(text); err == nil && (name == "" || strings.ContainsAny(name, "$;{}\"'\\ \r\n\x00/:*") || name[0] == '.') {
			t.Errorf("%q became %q", text, name)
		}
		if p, err := parseProtocol(text); err == nil && strings.ToUpper(text) != string(p) && text != "" {
			t.Errorf("%q became %q", text, p)
		}
	})
}
