package nginx

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/test/pkitest"
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
	_, err = found.probe(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "apt-get install lua-cjson") {
		t.Error(err)
	}
}

func TestOldTLS(t *testing.T) {
	for text, want := range map[string]bool{
		"built with OpenSSL 3.0.22 25 Aug 2026 (running with OpenSSL 3.0.19 27 Jan 2026)": true,
		"built with OpenSSL 3.0.22 25 Aug 2026 (running with OpenSSL 3.5.7 9 Jun 2026)":   false,
		"built with OpenSSL 3.5.6 7 Apr 2026":                                             false,
		"built with OpenSSL 3.4.0 22 Oct 2024":                                            true,
		"built with OpenSSL 1.1.1w  11 Sep 2023":                                          true,
		"built with OpenSSL 4.0.0 1 Apr 2026":                                             false,
		"built with BoringSSL":                                                            false,
		"built with LibreSSL 3.9.2":                                                       false,
		"":                                                                                false,
	} {
		if got := oldTLS("nginx version: nginx/1.22.1\n" + text + "\nconfigure arguments: --with-openssl=../openssl-1.0.2\n"); got != want {
			t.Errorf("%q: old %v, want %v", text, got, want)
		}
	}
}

// A capability that is found under another name than features ask for is never there.
func TestCapabilitiesHaveTheirNames(t *testing.T) {
	found, err := parse("n", "nginx version: nginx/1.22.1\nbuilt with OpenSSL 4.0.0\nconfigure arguments: --with-debug --with-http_v3_module --add-module=../ModSecurity-nginx\n", modules()[3:])
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range optionalFiles() {
		found.Has = append(found.Has, f.capability)
	}
	// The last ones are of a flag, and of the environment.
	found.Has = append(found.Has, systemAuthorities, "limit-store", "trace-collector")
	var known []string
	for _, c := range feature.Capabilities() {
		known = append(known, string(c))
	}
	if diff := cmp.Diff(known, found.Has); diff != "" {
		t.Error(diff)
	}
}

func TestParse(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one.so", "two.so"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	one, two := module{"one.so", []string{"one-src"}, "pkg-one", ""}, module{"two.so", []string{"two-src", "second"}, "pkg-two", ""}
	none := module{"none.so", []string{"none-src"}, "pkg-none", ""}
	may := func(m module) module { m.capability = "may-" + m.pkg; return m }
	args := "configure arguments: --with-x --modules-path=" + dir + " --add-module=../ngx_second-0.1 --add-dynamic-module=/src/none-src\n"
	for _, test := range []struct {
		version string
		needed  []module
		want    Capabilities
		err     string
	}{
		{"nginx/1.22.1", []module{one}, Capabilities{"n", "1.22.1", false, []string{dir + "/one.so"}, nil, false, ""}, ""},
		{"nginx/1.25.0", nil, Capabilities{"n", "1.25.0", false, nil, nil, false, ""}, ""},
		{"nginx/1.25.1", nil, Capabilities{"n", "1.25.1", true, nil, nil, false, ""}, ""},
		{"nginx/1.26.3 (Debian)", nil, Capabilities{"n", "1.26.3", true, nil, nil, false, ""}, ""},
		{"openresty/1.27.1.2", nil, Capabilities{"n", "1.27.1", true, nil, nil, false, ""}, ""},
		{"nginx/2.0.0", []module{two, one}, Capabilities{"n", "2.0.0", true, []string{dir + "/one.so"}, nil, false, ""}, ""},
		{"nginx/1.22.1", []module{may(two), may(none), may(one)}, Capabilities{"n", "1.22.1", false, []string{dir + "/one.so"}, []string{"may-pkg-two", "may-pkg-one"}, false, ""}, ""},
		{"nginx/1.22.1", []module{one, none}, Capabilities{}, "n lacks none.so; on Debian and Ubuntu: apt-get install pkg-none"},
		{"nginx", nil, Capabilities{}, "n -V does not print its version"},
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

func TestFindAuthorities(t *testing.T) {
	good, empty := filepath.Join(t.TempDir(), "good"), filepath.Join(t.TempDir(), "empty")
	a := pkitest.New(t)
	for name, text := range map[string]string{good: pkitest.PEM(a.Root), empty: "no certificate"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{good: good, empty: "", good + "-missing": "", "relative": ""} {
		if got := findAuthorities(file); got != want {
			t.Errorf("%s: %q", file, got)
		}
	}
}
