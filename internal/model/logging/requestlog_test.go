package logging_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/model/logging"
)

// FuzzLogFormat: any format that is taken is strings of nginx.conf that are not too long, with variables that
// are not Headgate's own, and reads back as itself.
func FuzzLogFormat(f *testing.F) {
	for _, text := range []string{`$remote_addr "$request"`, `it's ${status}`, `\"\\\n\x`, `'; error_log /x; #`, `$hg_x`, `${Hg_X}`, "a\x00", `100$`, `\$`, `${}`, `a' `} {
		f.Add(text)
	}
	f.Add(strings.Repeat(`$namespace `, 500))
	f.Add("$" + strings.Repeat("x", 3000))
	f.Add(strings.Repeat(`\\'`, 3000))
	f.Fuzz(func(t *testing.T, text string) {
		format, err := logging.NewFormat(text)
		if err != nil {
			return
		}
		written := format.Directive(nil)
		parameters, ok := readParameters(written)
		if !ok || strings.Contains(strings.ToLower(written), "${hg_") {
			t.Errorf("%q is written as %s", text, written)
		}
		for _, p := range parameters {
			if len(p) > 2048 {
				t.Errorf("%q has a parameter of %d bytes", text, len(p))
			}
		}
		joined := strings.Join(parameters, "")
		if len(joined) > 16<<10 { // with backslashes that the text does not need
			return
		}
		again, err := logging.NewFormat(joined)
		if text != "" && (err != nil || again.Directive(nil) != written) {
			t.Errorf("%q: %v, %s reads back as %s", text, err, written, again.Directive(nil))
		}
	})
}

// readParameters reads parameters in single quotes, with one space between them. A backslash escapes itself
// and a quote.
func readParameters(text string) (parameters []string, ok bool) {
	for {
		if !strings.HasPrefix(text, "'") {
			return nil, false
		}
		end := 1
		for end < len(text) && text[end] != '\'' {
			if text[end] == '\\' {
				if end++; end == len(text) || text[end] != '\\' && text[end] != '\'' {
					return nil, false
				}
			}
			end++
		}
		if end >= len(text) {
			return nil, false
		}
		parameters = append(parameters, text[1:end])
		if text = text[end+1:]; text == "" {
			return parameters, true
		}
		if text[0] != ' ' {
			return nil, false
		}
		text = text[1:]
	}
}

// TestLogOptions: the bounds hold in all units.
func TestLogOptions(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "buffer=16m gzip=9 flush=24h": true, "buffer=16384k": true, "buffer=16777216": true, "flush=1d": true, "flush=86400": true, "flush=86400000ms": true, "gzip": true,
		"buffer=17M": false, "buffer=16385K": false, "buffer=16777217": false, "buffer=999999999m": false, "flush=2d": false, "flush=25h": false, "flush=1441m": false,
		"flush=86401": false, "flush=86401s": false, "flush=86400001ms": false, "flush=999999999d": false, "buffer=0": false, "gzip=0": false, "gzip gzip=1": false, "buffer=1k buffer=2k": false,
	} {
		if _, err := logging.NewOptions(text); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
