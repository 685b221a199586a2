package answerrewrite

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/headgate/headgate/internal/syntax/pcre"
)

// FuzzParse: what is taken ends no header line, and is a text or a pattern
// that compiles.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"off", "default", "http://a.test/", "/in /out", "~in.?x /out", ".a.test .b.test", "a\r\nb", "~? x", "", "a b c", "/ /; Secure; SameSite=Lax", "/ /;a\r\nb"} {
		f.Add(seed)
	}
	safe := regexp.MustCompile(`^[A-Za-z0-9\-._~/:,?&=]*$`)
	f.Fuzz(func(t *testing.T, text string) {
		check := func(r rule, err error) {
			if err != nil {
				return
			}
			to, attributes, _ := strings.Cut(r.To, ";")
			if !safe.MatchString(r.From) || !safe.MatchString(to) || strings.ContainsFunc(attributes, unicode.IsControl) || len(r.From) > maxLength || len(r.To) > 2*maxLength {
				t.Errorf("%q became %+v", text, r)
			}
			if _, err := pcre.Load(r.Pattern, pcre.Options{}); err != nil || r.Pattern != "" && r.From != "" {
				t.Errorf("%q became %+v: %v", text, r, err)
			}
		}
		check(parsePath(text))
		check(parseDomain(text))
		from, err := parseFrom(text)
		check(rule{match: from}, err)
		to, err := parseTarget(text)
		if err == nil && to.template != nil {
			to.text = ""
			for _, piece := range to.template {
				to.text += piece.Literal
			}
		}
		check(rule{To: to.text}, err)
	})
}
