package admintext_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/syntax/admintext"
)

func TestRead(t *testing.T) {
	t.Parallel()
	got := admintext.Read(`
# $comment
map $http_x_plan $Plan { default free; ~^gold $nested; }
geo $remote_addr $inside { default 0; }
geo $outside { default 0; }
split_clients "${remote_addr}x" $half { 50% a; * b; }
geoip2 /etc/db.mmdb { auto_reload 5m; $geoip2_country source=$remote_addr country iso_code; }
limit_req_zone $binary_remote_addr zone=one:10m rate=1r/s;
limit_req_zone $binary_remote_addr zone=one:10m rate=1r/s;
limit_conn_zone $binary_remote_addr zone=two:10m;
map $a $hg_secret { default 1; }
limit_req_zone $a zone=hg_own:1m rate=1r/s;
map $a "$b c" { default 1; }
log_format x '$request "{"';
server { listen 81; map $a $inner { } set $local 1; location / { return 200; } }
content_by_lua_block { local x = "}" }
`)
	want := admintext.Names{
		Variables: []string{"geoip2_country", "half", "inside", "outside", "plan"}, RequestZones: []string{"one"}, ConnectionZones: []string{"two"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"", " \n", "}", "map", "map;", "map $a $b {", "geo \"", strings.Repeat("map $a $b { }\n", 100_000)} {
		if got := admintext.Read(text); len(got.RequestZones) > 0 {
			t.Errorf("%.20q: %v", text, got)
		}
	}
}

// FuzzRead checks that names of any text are names.
func FuzzRead(f *testing.F) {
	f.Add("map $a $b { default 1; }\nlimit_req_zone $a zone=z:1m rate=1r/s;")
	f.Add("geoip2 x { $c x; }\nlimit_conn_zone $a zone=hg_x:1m;}")
	plain := regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	f.Fuzz(func(t *testing.T, text string) {
		n := admintext.Read(text)
		for _, name := range slices.Concat(n.Variables, n.RequestZones, n.ConnectionZones) {
			if !plain.MatchString(name) || strings.HasPrefix(name, "hg_") {
				t.Errorf("%q", name)
			}
		}
	})
}
