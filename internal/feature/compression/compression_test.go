package compression_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/feature/compression"
	"github.com/headgate/headgate/internal/model"
)

// FuzzTypes checks what of MIME types gets into nginx.conf.
func FuzzTypes(f *testing.F) {
	f.Add("text/css application/json")
	f.Add("*")
	f.Add("text/css; include /etc/passwd")
	f.Add("TEXT/CSS\ttext/html")
	f.Fuzz(func(t *testing.T, text string) {
		types, err := model.NewMIMETypes(text)
		if err != nil {
			return
		}
		for _, one := range strings.Fields(types.String()) {
			if len(one) > 46 || strings.ContainsAny(one, "\"'\\;{}$ \t\r\n") || one != "*" && strings.Count(one, "/") != 1 {
				t.Errorf("%q: %q", text, one)
			}
		}
	})
}

// FuzzUserAgents checks that an expression stays in its quotes.
func FuzzUserAgents(f *testing.F) {
	f.Add("MSIE [4-6]\\.")
	f.Add("msie6")
	f.Add(`a"; gzip off; #\`)
	f.Add("(")
	f.Fuzz(func(t *testing.T, text string) {
		u, err := compression.ParseUserAgents(text)
		if err != nil {
			return
		}
		quoted := u.Quoted()
		inside := strings.NewReplacer(`\\`, "", `\"`, "").Replace(quoted[1 : len(quoted)-1])
		if strings.ContainsAny(inside, "\"\\\r\n\x00") || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
			t.Errorf("%q: %s", text, quoted)
		}
	})
}
