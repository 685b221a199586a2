// Package nginx manages the NGINX process: the capabilities of the installed
// NGINX, the directory that it runs in, and the process from its start to its end,
// including reloads and crashes.
//
// It knows no hosts and no units. Configurations are bytes.
package nginx

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// probeTimeout limits Discover, which takes a few hundredths of a second.
const probeTimeout = 20 * time.Second

// Capabilities are what the installed NGINX supports.
type Capabilities struct {
	// Binary is the path of NGINX.
	Binary string
	// Version has the form "1.22.1".
	Version string
	// HTTP2Directive is set if HTTP/2 is enabled by "http2 on" (1.25.1 and later)
	// instead of a parameter of listen.
	HTTP2Directive bool
	// Modules are the files for load_module, in their order, without built-in
	// modules.
	Modules []string
	// Has lists what it can do that another NGINX may not, by the names of
	// feature.Capability.
	Has []string
	// OldPCRE is set if the Lua module matches by PCRE 1, as on Debian 12.
	OldPCRE bool
	// Authorities is the file of the system's certificate authorities, empty if there
	// is none that NGINX could read.
	Authorities string
}

// A module is a module that Headgate needs, or one that it uses where it is installed.
type module struct {
	file string
	// sources are names of the module's source directory. The configure arguments
	// of an NGINX with the module built in contain one of them.
	sources []string
	// pkg is the Debian package.
	pkg string
	// capability is what an optional module gives, empty for one that Headgate needs.
	capability string
}

func modules() []module {
	return []module{
		{"ndk_http_module.so", []string{"ngx_devel_kit", "http-ndk"}, "libnginx-mod-http-ndk", ""},
		{"ngx_http_lua_module.so", []string{"lua-nginx-module", "ngx_lua", "http-lua"}, "libnginx-mod-http-lua", ""},
		{
			"ngx_http_headers_more_filter_module.so", []string{"headers-more", "headers_more"},
			"libnginx-mod-http-headers-more-filter", "",
		},
		{
			"ngx_http_modsecurity_module.so", []string{"ModSecurity-nginx", "modsecurity-nginx", "http-modsecurity"},
			"libnginx-mod-http-modsecurity", "modsecurity-module",
		},
		{"ngx_http_brotli_filter_module.so", []string{"ngx_brotli", "http-brotli"}, "libnginx-mod-http-brotli-filter", "brotli-module"},
		{"ngx_http_geoip2_module.so", []string{"ngx_http_geoip2", "http-geoip2"}, "libnginx-mod-http-geoip2", "geoip2-module"},
	}
}

// Discover finds NGINX and its capabilities: $HEADGATE_NGINX or $NGINX_BINARY if
// set, otherwise nginx on the path or in the usual directories. Its error names
// the packages to install. threads are the names of thread pools for Lua.
func Discover(ctx context.Context, threads ...string) (Capabilities, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	binary, err := find()
	if err != nil {
		return Capabilities{}, err
	}
	out, err := exec.CommandContext(ctx, binary, "-V").CombinedOutput()
	if err != nil {
		return Capabilities{}, fmt.Errorf("run %s -V: %w: %s", binary, err, strings.TrimSpace(string(out)))
	}
	c, err := parse(binary, string(out), modules())
	if err != nil {
		return Capabilities{}, err
	}
	if c.Authorities = findAuthorities(cmp.Or(os.Getenv("SSL_CERT_FILE"), authoritiesFile)); c.Authorities != "" {
		c.Has = append(c.Has, systemAuthorities)
	}
	for _, f := range optionalFiles() {
		if f.readable() {
			c.Has = append(c.Has, f.capability)
		}
	}
	c.OldPCRE, err = c.probe(ctx, threads)
	return c, err
}

// Version is what NGINX says of its version, such as "nginx/1.22.1".
func Version(ctx context.Context) (string, error) {
	binary, err := find()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, "-v").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("run %s -v: %w: %s", binary, err, strings.TrimSpace(string(out)))
	}
	_, version, ok := strings.Cut(string(out), "nginx version: ")
	if !ok {
		return "", fmt.Errorf("%s -v does not print its version", binary)
	}
	version, _, _ = strings.Cut(version, "\n")
	return strings.TrimSpace(version), nil
}

// authoritiesFile is where Debian has the system's certificate authorities. As for
// OpenSSL and Go, $SSL_CERT_FILE names another one.
const (
	authoritiesFile = "/etc/ssl/certs/ca-certificates.crt"
	// systemAuthorities is the capability.
	systemAuthorities = "system-authorities"
)

// findAuthorities returns the file, empty if it has no certificate: NGINX rejects all of
// its configuration then.
func findAuthorities(file string) string {
	content, err := os.ReadFile(file)
	if err != nil || !filepath.IsAbs(file) || !x509.NewCertPool().AppendCertsFromPEM(content) {
		return ""
	}
	return file
}

func find() (string, error) {
	for _, name := range []string{"HEADGATE_NGINX", "NGINX_BINARY"} {
		if named := os.Getenv(name); named != "" {
			path, err := exec.LookPath(named)
			if err != nil {
				return "", fmt.Errorf("find NGINX by $%s: %w", name, err)
			}
			return filepath.Abs(path)
		}
	}
	for _, name := range []string{"nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", errors.New("nginx is not on the path, /usr/sbin or /usr/local/sbin; on Debian and Ubuntu: " +
		"apt-get install nginx libnginx-mod-http-lua libnginx-mod-http-headers-more-filter lua-cjson")
}

// parse parses the output of nginx -V and finds the modules.
func parse(binary, output string, needed []module) (Capabilities, error) {
	found := regexp.MustCompile(`(?m)^nginx version: \S+?/(\d+\.\d+\.\d+)`).FindStringSubmatch(output)
	if found == nil {
		return Capabilities{}, fmt.Errorf("%s -V does not print its version", binary)
	}
	version := found[1]
	c := Capabilities{
		Binary: binary, Version: version, HTTP2Directive: !olderThan(version, 1, 25, 1),
	}
	if !oldTLS(output) {
		c.Has = append(c.Has, "hybrid-groups")
	}
	if strings.Contains(output, "--with-http_v3_module") {
		c.Has = append(c.Has, "quic")
	}
	if strings.Contains(output, "--with-debug") {
		c.Has = append(c.Has, "debug-log")
	}
	var missing, packages []string
	for _, m := range needed {
		file, ok := m.find(output)
		if file != "" {
			c.Modules = append(c.Modules, file)
		}
		switch {
		case ok && m.capability != "":
			c.Has = append(c.Has, m.capability)
		case !ok && m.capability == "":
			missing, packages = append(missing, m.file), append(packages, m.pkg)
		}
	}
	if missing != nil {
		return Capabilities{}, fmt.Errorf("%s lacks %s; on Debian and Ubuntu: apt-get install %s",
			binary, strings.Join(missing, ", "), strings.Join(packages, " "))
	}
	return c, nil
}

// oldTLS reports whether nginx -V names an OpenSSL before 3.5. If NGINX runs with
// another one than it was built with, "running with" decides.
func oldTLS(output string) bool {
	found := regexp.MustCompile(`(?:built|running) with OpenSSL (\d+\.\d+)\.`).FindAllStringSubmatch(output, -1)
	return found != nil && olderThan(found[len(found)-1][1], 3, 5)
}

// olderThan compares a version, of digits and dots, with another one.
func olderThan(version string, other ...int) bool {
	var numbers []int
	for text := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(text) // A number that is too large is the largest one.
		numbers = append(numbers, n)
	}
	return slices.Compare(numbers, other) < 0
}

// find returns the module's file, which is empty if the module is built in.
func (m module) find(output string) (file string, ok bool) {
	for _, built := range regexp.MustCompile(`--add-module=(\S+)`).FindAllStringSubmatch(output, -1) {
		if slices.ContainsFunc(m.sources, func(s string) bool { return strings.Contains(built[1], s) }) {
			return "", true
		}
	}
	folders := []string{"/usr/lib/nginx/modules", "/usr/share/nginx/modules"}
	if named := regexp.MustCompile(`--modules-path=(\S+)`).FindStringSubmatch(output); named != nil {
		folders = slices.Insert(folders, 0, named[1])
	}
	for _, folder := range folders {
		file := filepath.Join(folder, m.file)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file, true
		}
	}
	return "", false
}

// probe starts NGINX with its modules, and loads the Lua libraries whose files are
// unknown. It reports whether the Lua module has PCRE 1.
func (c Capabilities) probe(ctx context.Context, threads []string) (oldPCRE bool, err error) {
	dir, err := os.MkdirTemp("", "headgate-probe-")
	if err != nil {
		return false, fmt.Errorf("try NGINX: %w", err)
	}
	defer os.RemoveAll(dir)
	var conf strings.Builder
	for _, file := range c.Modules {
		fmt.Fprintf(&conf, "load_module %q;\n", file)
	}
	needed := ""
	for _, name := range threads {
		fmt.Fprintf(&conf, "thread_pool %s threads=1;\n", name)
		needed = `assert(ngx.run_worker_thread, "the Lua module is older than 0.10.21")`
	}
	// It exits before it would serve. A mere test would not run Lua.
	conf.WriteString("daemon off;\nmaster_process off;\npid pid;\nevents {}\nhttp {\n access_log off;\n" +
		` init_by_lua_block { require("resty.core") require("cjson.safe") require("ngx.semaphore") ` + needed +
		` require("ffi").cdef "const char *ngx_http_lua_ffi_pcre_version(void);"` +
		fmt.Sprintf(` local file = assert(io.open(%q, "w"))`, filepath.Join(dir, "pcre")) +
		` pcall(function() file:write(require("ffi").string(require("ffi").C.ngx_http_lua_ffi_pcre_version())) end)` +
		` file:close() os.exit(0) }` + "\n")
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&conf, " %s_temp_path %s;\n", kind, kind)
	}
	conf.WriteString("}\n")
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf.String()), 0o600); err != nil {
		return false, fmt.Errorf("try NGINX: %w", err)
	}
	err = run(ctx, c.Binary, file, nil, "-p", dir)
	for library, pkg := range map[string]string{"cjson": "lua-cjson", "resty.core": "lua-resty-core"} {
		if err != nil && regexp.MustCompile(`module '`+regexp.QuoteMeta(library)+`\S*' not found`).MatchString(err.Error()) {
			return false, fmt.Errorf("%s lacks the Lua library %s; on Debian and Ubuntu: apt-get install %s", c.Binary, library, pkg)
		}
	}
	if err != nil {
		return false, fmt.Errorf("%s does not work with its modules: %w", c.Binary, err)
	}
	version, err := os.ReadFile(filepath.Join(dir, "pcre"))
	if err != nil {
		return false, fmt.Errorf("read which PCRE the Lua module has: %w", err)
	}
	return regexp.MustCompile(`^[1-9]\.`).Match(version), nil
}
