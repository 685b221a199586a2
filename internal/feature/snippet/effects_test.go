package snippet

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/syntax/snippet"
)

// Effects have the phases in which they do something, from all blocks of a snippet.
func TestPhases(t *testing.T) {
	t.Parallel()
	response := "[header_filter]"
	for text, want := range map[string]string{
		`set $a 1; return 403;`:                           "[]",
		`allow 10.0.0.1; deny all;`:                       "[]",
		`add_header X-A a;`:                               response,
		`if ($arg_a) { more_set_headers "X-A: a"; }`:      response,
		`expires 1h;`:                                     response,
		`proxy_hide_header X-A;`:                          response,
		`access_log off;`:                                 response,
		`more_clear_input_headers X-A;`:                   "[preaccess]",
		`proxy_set_header X-A a;`:                         "[auth_passed balancer request_headers]",
		`limit_rate 1k;`:                                  "[auth_passed request_headers]",
		`error_page 403 https://a.test/;`:                 "[error_page]",
		`auth_request_set $u $upstream_http_x_auth_user;`: "[auth_passed auth_response header_filter preaccess request_headers]",
	} {
		s := snippet.Parse(text, snippet.InLocation, snippet.Options{})
		effects := effectsOf(&s.Program)
		if got := fmt.Sprint(slices.Sorted(maps.Keys(phasesOf(effects)))); got != want || len(s.Refusals) > 0 {
			t.Errorf("%s: %s, %v, want %s", text, got, s.Refusals, want)
		}
	}
	s := snippet.Parse(`location /a { deny all; } location /b { auth_request_set $a $upstream_http_x_b; auth_request_set $b $upstream_cookie_c; }`, snippet.InLocation, snippet.Options{})
	if effects := effectsOf(&s.Program); !hasRules(&s.Program) || fmt.Sprint(keptHeaders(effects)) != "[set-cookie x-b]" {
		t.Errorf("rules %v, kept %v, %v", hasRules(&s.Program), keptHeaders(effects), s.Refusals)
	}
}
