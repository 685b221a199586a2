package nginxsyntax_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/headgate/headgate/internal/syntax/nginxsyntax"
)

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := nginxsyntax.Parse("# first }\nmap $uri $mine { # {\n default \"{;}$uri\\\"\"; \"~^/a{2}\" ${x}y; }\n" +
		"if ($http_x = \"a b\") { return 403; }\nadd_header X a};\ncontent_by_lua_block {\n -- don't }\n ngx.say([[}]], \"}\", {}) --[=[ } ]=]\n}\nset $a 'x;\ny';gzip on;")
	if err != nil {
		t.Fatal(err)
	}
	want := []nginxsyntax.Directive{
		{Name: "map", Args: []string{"$uri", "$mine"}, Line: 2, HasBlock: true, Block: []nginxsyntax.Directive{
			{Name: "default", Args: []string{`{;}$uri"`}, Line: 3},
			{Name: "~^/a{2}", Args: []string{"${x}y"}, Line: 3},
		}},
		{Name: "if", Args: []string{"($http_x", "=", "a b", ")"}, Line: 4, HasBlock: true, Block: []nginxsyntax.Directive{
			{Name: "return", Args: []string{"403"}, Line: 4},
		}},
		{Name: "add_header", Args: []string{"X", "a}"}, Line: 5},
		{Name: "content_by_lua_block", Args: []string{"\n -- don't }\n ngx.say([[}]], \"}\", {}) --[=[ } ]=]\n"}, Line: 6},
		{Name: "set", Args: []string{"$a", "x;\ny"}, Line: 10},
		{Name: "gzip", Args: []string{"on"}, Line: 11},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// TestErrors: what does not end where it seems to end is refused, with the line.
func TestErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"}":                          `line 1: unexpected "}": it would close the block that the text is in`,
		"gzip on;\n}\nserver {":      `line 2: unexpected "}": it would close the block that the text is in`,
		"gzip on":                    `line 1: the directive "gzip" does not end in ";"`,
		"gzip on }":                  `line 1: unexpected "}" in the directive "gzip"`,
		"server {\n listen 1;\n":     `line 3: a block is not closed by "}"`,
		"set $a \"b;\n\n":            `line 1: a quote " is not closed`,
		"set $a 'b'c;":               `line 1: unexpected "c" behind a quote`,
		"gzip on;;":                  `line 1: unexpected ";"`,
		"{ }":                        `line 1: unexpected "{"`,
		"set $a b\\":                 `line 1: "\" at the end`,
		"\nlog_by_lua_block { '}' ":  `line 2: a block of Lua is not closed by "}"`,
		"log_by_lua_block { --[[ }":  `line 1: a block of Lua is not closed by "}"`,
		"log_by_lua_block { -- } ":   `line 1: a block of Lua is not closed by "}"`,
		"log_by_lua_block { [==[ } ": `line 1: a block of Lua is not closed by "}"`,
		strings.Repeat("a {", 30):    "line 1: blocks are nested more than 20 deep",
	} {
		_, err := nginxsyntax.Parse(text)
		var wrong *nginxsyntax.Error
		if !errors.As(err, &wrong) || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestDefined(t *testing.T) {
	t.Parallel()
	got := nginxsyntax.Defined(`
# $comment
map $http_x_plan $Plan { default free; ~^gold $nested; }
geo $remote_addr $inside { default 0; }
geo $outside { default 0; }
split_clients "${remote_addr}x" $half { 50% a; * b; }
geoip2 /etc/db.mmdb { auto_reload 5m; $geoip2_country source=$remote_addr country iso_code; }
limit_req_zone $binary_remote_addr zone=one:10m rate=1r/s;
limit_req_zone $binary_remote_addr zone=one:10m rate=1r/s;
limit_conn_zone $binary_remote_addr zone=two:10m; limit_conn_zone zone=key:1m zone=first:1m zone=last:1m;
map $a $hg_secret { default 1; }
limit_req_zone $a zone=hg_own:1m rate=1r/s;
map $a "$b c" { default 1; }
log_format x '$request "{"';
server { listen 81; map $a $inner { } set $local 1; location / { return 200; } }
content_by_lua_block { local x = "}" }
`)
	want := nginxsyntax.Names{
		Variables: []string{"geoip2_country", "half", "inside", "outside", "plan"}, RequestZones: []string{"one"}, ConnectionZones: []string{"last", "two"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"", " \n", "}", "map", "map;", "map $a $b {", "geo \"", "limit_req_zone;", "limit_req_zone zone=key:1m;", strings.Repeat("map $a $b { }\n", 100_000)} {
		if got := nginxsyntax.Defined(text); len(got.Variables)+len(got.RequestZones) > 0 {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestDefinedBeforeAnError: a mistake at the end takes no names away that tenants use while the last good text stays.
func TestDefinedBeforeAnError(t *testing.T) {
	t.Parallel()
	for _, behind := range []string{"map $c $d { default 1;", "}", "a \"b;", "a", ";"} {
		got := nginxsyntax.Defined("map $a $b { default 1; }\nlimit_req_zone $a zone=one:1m rate=1r/s;\n" + behind)
		if want := (nginxsyntax.Names{Variables: []string{"b"}, RequestZones: []string{"one"}}); cmp.Diff(want, got) != "" {
			t.Errorf("%q: %+v", behind, got)
		}
	}
}

// FuzzDefined checks that names of any text are names.
func FuzzDefined(f *testing.F) {
	f.Add("map $a $b { default 1; }\nlimit_req_zone $a zone=z:1m rate=1r/s;")
	f.Add("geoip2 x { $c x; }\nlimit_conn_zone $a zone=hg_x:1m;}")
	plain := regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	f.Fuzz(func(t *testing.T, text string) {
		n := nginxsyntax.Defined(text)
		for _, name := range slices.Concat(n.Variables, n.RequestZones, n.ConnectionZones) {
			if !plain.MatchString(name) || strings.HasPrefix(name, "hg_") {
				t.Errorf("%q", name)
			}
		}
	})
}

// FuzzParse: text that is taken can't leave its block. NGINX reads it in a block of map, which
// takes any names: then what follows must still be read, and nothing more.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a b;", "}", "a \"b;", "a {", "a b", "a\\;b;", "a ${b};", "a $b{c;", "a 'b'c;", "# }", "a b;#", "a \\\"b;", "a b}c;", "a)b;", "a \"b\")c;"} {
		f.Add(seed)
	}
	binary := os.Getenv("HEADGATE_NGINX")
	if binary == "" {
		binary = "nginx"
	}
	path, err := exec.LookPath(binary)
	if err != nil {
		f.Skip("no NGINX")
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsRune(text, 0) || len(text) > 2000 {
			return
		}
		parsed, err := nginxsyntax.Parse(text)
		if err != nil {
			return
		}
		for _, d := range parsed {
			// Other files, and what has a meaning in the block.
			if d.HasBlock || d.Name == "include" || strings.HasSuffix(d.Name, "_by_lua_block") || len(d.Args) != 1 {
				return
			}
		}
		conf := filepath.Join(t.TempDir(), "nginx.conf")
		const marker = "directive_behind_the_text"
		content := "events {}\nhttp {\ntypes {\n" + text + "\n}\n" + marker + ";\n}\n"
		if err := os.WriteFile(conf, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		output, _ := exec.Command(path, "-t", "-e", "stderr", "-p", t.TempDir(), "-c", conf).CombinedOutput()
		if !strings.Contains(string(output), marker) && !strings.Contains(string(output), "too long") {
			t.Errorf("%q: %s", text, output)
		}
	})
}
