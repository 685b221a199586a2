package model_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/model"
)

// FuzzTLSTexts: what is taken of any text can stand in nginx.conf as one word,
// or as words of TLS versions, and reads back as the same.
func FuzzTLSTexts(f *testing.F) {
	for _, seed := range []string{
		"HIGH:!aNULL", " A  B\tC ", "!A", "HIGH;}", "auto", "X25519:P-256", "TLSv1.2 TLSv1.3", "TLSv1", "\u00a0HIGH", "a\x00b", "#HIGH", "$host", `\`, "'", "",
	} {
		f.Add(seed)
	}
	word := regexp.MustCompile(`\A[A-Za-z0-9!:+_@=.-]*\z`)
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := model.NewCiphers(text); err == nil {
			again, err := model.NewCiphers(c.String())
			if !word.MatchString(c.String()) || err != nil || again != c {
				t.Errorf("ciphers %q of %q", c, text)
			}
			if strings.TrimSpace(text) != "" && c.String() == "" {
				t.Errorf("no ciphers of %q", text)
			}
		}
		if c, err := model.NewCurves(text); err == nil {
			again, err := model.NewCurves(c.String())
			if !word.MatchString(c.String()) || c.String() == "" || err != nil || again != c {
				t.Errorf("curves %q of %q", c, text)
			}
		}
		if v, err := model.NewTLSVersions(text); err == nil {
			again, err := model.NewTLSVersions(v.String())
			if !regexp.MustCompile(`\ATLSv1(\.[123])?( TLSv1(\.[123])?)*\z`).MatchString(v.String()) || err != nil || again != v {
				t.Errorf("versions %q of %q", v, text)
			}
		}
	})
}
