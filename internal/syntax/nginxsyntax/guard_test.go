package nginxsyntax_test

import (
	"testing"

	"github.com/headgate/headgate/internal/syntax/nginxsyntax"
)

func TestMayGuard(t *testing.T) {
	for text, guards := range map[string]bool{
		"":                                       false,
		"# nothing":                              false,
		"add_header X-Frame-Options DENY;":       false,
		"more_set_headers \"X: { deny all; }\";": false,
		"gzip_types text/css;\n# deny all;\nexpires 1d;": false,
		"add_header X '${host}; return 403;';":           false,
		"add_header X ${host};":                          false,
		"deny all;":                                      true,
		"add_header X a; deny all;":                      true,
		"add_header X a;deny all;":                       true,
		"add_header X a\\; deny all;":                    false,
		"add_header X \"a\\\"; deny all;\";":             false,
		"add_header X a":                                 true,
		"add_header X \"a;":                              true,
		"add_header X a # deny\n;":                       false,
		"location /x { add_header X a; }":                true,
		"if ($arg_x) { add_header X a; }":                true,
		"\"deny\" all;":                                  true,
		"proxy_set_header X-User \"\";":                  true,
		"add_headers X a;":                               true,
		"rewrite ^ /x;":                                  true,
		"}":                                              true,
		"auth_basic off;":                                true,
		"map $a $b { deny 1; }":                          true,
		"#\r deny all;":                                  false, // A carriage return ends no comment for NGINX.
	} {
		if got := nginxsyntax.MayGuard(text, false); got != guards {
			t.Errorf("%q: %v", text, got)
		}
	}
	for text, guards := range map[string]bool{
		"map $a $b { default 1; deny 1; }":                                               false,
		"limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s; map $a $b { } gzip on;": false,
		"map $a $b { } deny all;":                                                        true,
		"limit_req zone=a;":                                                              true,
		"map $a $b {":                                                                    true,
		"server { deny all; }":                                                           true,
	} {
		if got := nginxsyntax.MayGuard(text, true); got != guards {
			t.Errorf("http: %q: %v", text, got)
		}
	}
}
