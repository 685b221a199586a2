package snippet_test

import (
	"testing"

	"github.com/headgate/headgate/internal/syntax/snippet"
)

// No header of a snippet says where a body ends.
func TestFramingIsRefused(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{
		`proxy_set_header Content-Length 5;`:                   true,
		`proxy_set_header Transfer-Encoding "";`:               true,
		`more_set_input_headers "X-A: a" "HTTP2-Settings: b";`: true,
		`more_clear_input_headers Content-Length;`:             true,
		`add_header Content-Length 5;`:                         true,
		`more_set_headers "connection: close";`:                true,
		`proxy_set_header Upgrade $http_upgrade;`:              false,
		`proxy_set_header Connection upgrade;`:                 false,
		`add_header Content-Type text/plain;`:                  false,
	} {
		s := snippet.Parse(text, snippet.InLocation, snippet.Options{})
		if got := len(s.Refusals) == 1; got != refused {
			t.Errorf("%s: %v", text, s.Refusals)
		}
	}
}
