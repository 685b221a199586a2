package nginx

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiscover(t *testing.T) {
	got, err := Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Version == "" || !filepath.IsAbs(got.Binary) {
		t.Errorf("%+v", got)
	}
	t.Setenv("HEADGATE_NGINX", "")
	t.Setenv("NGINX_BINARY", got.Binary)
	t.Setenv("PATH", "/nowhere")
	again, err := Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, again); diff != "" {
		t.Error(diff)
	}
	t.Setenv("HEADGATE_NGINX", "/nowhere/nginx")
	if _, err := Discover(t.Context()); err == nil || !strings.Contains(err.Error(), "$HEADGATE_NGINX") {
		t.Error(err)
	}
}

func TestDiscoverMissingLibrary(t *testing.T) {
	found, err := Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LUA_CPATH", "/nowhere/?.so")
	t.Setenv("LUA_PATH", "/usr/share/lua/5.1/?.lua")
	err = found.probe(t.Context())
	if err == nil || !strings.Contains(err.Error(), "apt-get install lua-cjson") {
		t.Error(err)
	}
}

func TestParse(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one.so", "two.so"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one, two := module{"one.so", []string{"one-src"}, "pkg-one"}, module{"two.so", []string{"two-src", "second"}, "pkg-two"}
	none := module{"none.so", []string{"none-src"}, "pkg-none"}
	args := "configure arguments: --with-x --modules-path=" + dir + " --add-module=../ngx_second-0.1 --add-dynamic-module=/src/none-src\n"
	for _, test := range []struct {
		version string
		needed  []module
		want    Capabilities
		err     string
	}{
		{"nginx/1.22.1", []module{one}, Capabilities{"n", "1.22.1", false, []string{dir + "/one.so"}}, ""},
		{"nginx/1.25.0", nil, Capabilities{"n", "1.25.0", false, nil}, ""},
		{"nginx/1.25.1", nil, Capabilities{"n", "1.25.1", true, nil}, ""},
		{"nginx/1.26.3 (Debian)", nil, Capabilities{"n", "1.26.3", true, nil}, ""},
		{"openresty/1.27.1.2", nil, Capabilities{"n", "1.27.1", true, nil}, ""},
		{"nginx/2.0.0", []module{two, one}, Capabilities{"n", "2.0.0", true, []string{dir + "/one.so"}}, ""},
		{"nginx/1.22.1", []module{one, none}, Capabilities{}, "n lacks none.so; on Debian and Ubuntu: apt-get install pkg-none"},
		{"nginx", nil, Capabilities{}, "n -V does not tell its version"},
	} {
		got, err := parse("n", "nginx version: "+test.version+"\nbuilt with OpenSSL 3.0.0\n"+args, test.needed)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", test.version, diff)
		}
		if (err == nil) != (test.err == "") || err != nil && err.Error() != test.err {
			t.Errorf("%s: %v", test.version, err)
		}
	}
}
