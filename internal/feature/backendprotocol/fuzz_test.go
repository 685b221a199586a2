package backendprotocol

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/syntax/template"

	"github.com/headgate/headgate/internal/test/pkitest"
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

// FuzzParameters: each parameter of a ConfigMap becomes one variable of the closed list, one
// header that nothing else reads, or the Host, and literals are of printable characters.
func FuzzParameters(f *testing.F) {
	f.Add("SCRIPT_FILENAME", "$document_root$fastcgi_script_name", "/srv", "index.php")
	f.Add("HTTP_X_A", "${host}\r\nX: y", "", "")
	f.Add("HTTP_HOST", "a b", "$document_root", "")
	f.Add("MY_PARAM;\n", "$1$$", "$request_filename", "a/b")
	f.Fuzz(func(t *testing.T, name, value, root, index string) {
		if _, err := parseIndex(index); err != nil {
			index = ""
		}
		p, key, problem := readParameters(map[string]string{name: value, documentRootName: root}, index, parameterNames())
		if problem != "" {
			if key != name && key != documentRootName && key != "" {
				t.Errorf("a problem of %q", key)
			}
			return
		}
		templates := []template.Template{p.Host}
		for _, v := range p.Variables {
			if !slices.ContainsFunc(parameterNames(), func(one string) bool { return variableOf(one) == v.Name }) {
				t.Errorf("%q sets %q", name, v.Name)
			}
			templates = append(templates, v.Value)
		}
		for _, h := range p.Headers {
			if !strings.HasPrefix(h.Name, "X-") || strings.Trim(h.Name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" || h.Name == "X-FORWARDED-FOR" {
				t.Errorf("%q sets the header %q", name, h.Name)
			}
			templates = append(templates, h.Value)
		}
		for _, template := range templates {
			length := 0
			for _, piece := range template {
				length += len(piece.Literal)
				if !valueForm.MatchString(piece.Literal) || strings.Contains(piece.Literal, "$") {
					t.Errorf("%q has the literal %q", value, piece.Literal)
				}
			}
			if length > maxText || len(template) > maxPieces {
				t.Errorf("%q became %d bytes in %d pieces", value, length, len(template))
			}
		}
	})
}
