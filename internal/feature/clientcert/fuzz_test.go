package clientcert

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature"
)

// FuzzSecret reads Secrets. What the data plane gets is certificates and revocation lists that
// can be read, and nothing else; all else is a problem.
func FuzzSecret(f *testing.F) {
	golden, err := os.ReadFile("testdata/verify.txtar")
	if err != nil {
		f.Fatal(err)
	}
	block := func(kind string) string {
		text := string(golden)
		from := strings.Index(text, "-----BEGIN "+kind)
		return text[from:from+strings.Index(text[from:], "-----END")] + "-----END " + kind + "-----\n"
	}
	certificate, list := block("CERTIFICATE"), block("X509 CRL")
	for _, c := range [][2]string{
		{certificate, ""}, {certificate, list}, {certificate + certificate, list + list}, {"", list}, {"rubbish", ""}, {certificate, "rubbish"}, {list, certificate},
		{"text\n" + certificate + "text", ""}, {strings.Replace(certificate, "MII", "AII", 1), ""}, {certificate, strings.Replace(list, "MII", "AII", 1)},
		{strings.Replace(certificate, "-----\n", "-----\nA: b\n\n", 1), ""}, {"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", ""},
	} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, authorities, lists string) {
		data := map[string][]byte{caKey: []byte(authorities), crlKey: []byte(lists)}
		s := readSecret(data)
		if (s.problem == "") == (s.content.Name == "") {
			t.Fatalf("problem %q with content %q", s.problem, s.content.Name)
		}
		if len(s.problem) > 300 {
			t.Errorf("a problem of %d bytes", len(s.problem))
		}
		if again := readSecret(data); again.problem != s.problem || again.content.Name != s.content.Name {
			t.Error("the same Secret gave two results")
		}
		kinds := map[string]int{}
		var plain []byte
		for block, rest := pem.Decode(s.content.Bytes); block != nil; block, rest = pem.Decode(rest) {
			kinds[block.Type]++
			plain = append(plain, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
			_, err := x509.ParseCertificate(block.Bytes)
			if block.Type == "X509 CRL" {
				_, err = x509.ParseRevocationList(block.Bytes)
			}
			if err != nil {
				t.Error(err)
			}
		}
		if !bytes.Equal(plain, s.content.Bytes) || kinds["CERTIFICATE"]+kinds["X509 CRL"] == 0 && s.problem == "" {
			t.Errorf("the content is %q", s.content.Bytes)
		}
		if s.problem == "" && (kinds["CERTIFICATE"] == 0 || (lists != "") != (kinds["X509 CRL"] > 0)) {
			t.Errorf("%v of %q and %q", kinds, authorities, lists)
		}
	})
}

// FuzzValues reads the other values. What is taken is a URL, and an expression of its form.
func FuzzValues(f *testing.F) {
	url := regexp.MustCompile(`^(https?://[!-~]+|[/@][!-~]+)$`)
	for _, text := range []string{"https://a.test/$request_uri", "/x", "@x", "CN=a", "CN=(", "CN=(*UTF)", "default/ca", " a / b ", "a/b/c", "https://a.test/\r\nX: y", "http://\x00", "CN=\xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := parsePage(text); err == nil && (!url.MatchString(text) || strings.HasPrefix(text, "http") != (p.target != nil)) {
			t.Errorf("%q is the page %v", text, p)
		}
		if p, err := parsePattern(text); err == nil && (!strings.HasPrefix(text, "CN=") || p.written != text) {
			t.Errorf("%q is the expression %v", text, p)
		}
		if object, err := feature.SecretIn(text); err == nil && (object.Namespace == "" || object.String() != strings.ReplaceAll(text, " ", "")) {
			t.Errorf("%q is the Secret %v", text, object)
		}
		if mode, err := parseMode(text); err == nil && text != "" && mode != text {
			t.Errorf("%q is the mode %s", text, mode)
		}
	})
}
