package model_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/model"
)

// FuzzLogFormat: any format that is taken is one string of nginx.conf, with variables that are
// not Headgate's own, and reads back as itself.
func FuzzLogFormat(f *testing.F) {
	for _, text := range []string{`$remote_addr "$request"`, `it's ${status}`, `\"\\\n\x`, `'; error_log /x; #`, `$hg_x`, `${Hg_X}`, "a\x00", `100$`, `\$`, `${}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		format, err := model.NewLogFormat(text)
		if err != nil {
			return
		}
		written := format.Directive(nil)
		inner := strings.ReplaceAll(strings.ReplaceAll(written[1:len(written)-1], `\\`, ""), `\'`, "")
		if written[0] != '\'' || !strings.HasSuffix(written, "'") || strings.ContainsAny(inner, `'\`) || strings.Contains(strings.ToLower(written), "${hg_") {
			t.Errorf("%q is written as %s", text, written)
		}
		again, err := model.NewLogFormat(written[1 : len(written)-1])
		if text != "" && (err != nil || again.Directive(nil) != written) {
			t.Errorf("%q: %v, %s reads back as %s", text, err, written, again.Directive(nil))
		}
	})
}
