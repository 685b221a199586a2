package snippet

import (
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/syntax/snippet"
	"github.com/headgate/headgate/internal/syntax/template"
)

// A use says what becomes of a directive that is a setting. Without any of the fields it does
// nothing that could be seen, in NGINX as here.
type use struct {
	// annotations are those that the directive stands for.
	annotations []annotation
	// once is set where a second directive of the name can't be followed.
	once bool
	// covered is set where each location of ingress-nginx has the directive: one in the
	// server does nothing there.
	covered bool
	// follow writes what no annotation has into the profile.
	follow func(*follower, snippet.Setting)
	// reason says why the directive does nothing, where it would in NGINX.
	reason string
}

// An annotation has the text that a directive stands for, if that can be said.
type annotation struct {
	name string
	text func(snippet.Setting) (string, bool)
}

// usesOf are the uses of all directives.
func usesOf() map[string]use {
	all := profileUses()
	standFor := func(to string, covered bool, text func(snippet.Setting) (string, bool), names ...string) {
		for _, name := range names {
			all[name] = use{annotations: []annotation{{to, text}}, covered: covered, once: true}
		}
	}
	each := func(format string) []string {
		return []string{"proxy_" + format, "fastcgi_" + format, "grpc_" + format}
	}
	for _, way := range []string{"connect", "read", "send"} {
		standFor("proxy-"+way+"-timeout", true, wholeSeconds, each(way+"_timeout")...)
	}
	standFor("proxy-next-upstream", true, asWritten, each("next_upstream")...)
	standFor("proxy-next-upstream-timeout", true, wholeSeconds, each("next_upstream_timeout")...)
	standFor("proxy-next-upstream-tries", true, asWritten, each("next_upstream_tries")...)
	standFor("proxy-buffering", true, asWritten, each("buffering")...)
	standFor("proxy-request-buffering", true, asWritten, each("request_buffering")...)
	for _, name := range each("buffers") {
		all[name] = use{covered: true, annotations: []annotation{{"proxy-buffers-number", argument(0)}, {"proxy-buffer-size", argument(1)}}}
	}
	all["proxy_redirect"] = use{covered: true, once: true, annotations: []annotation{{"proxy-redirect-from", redirect(0)}, {"proxy-redirect-to", redirect(1)}}}
	standFor("proxy-buffer-size", true, asWritten, each("buffer_size")...)
	standFor("proxy-busy-buffers-size", false, asWritten, each("busy_buffers_size")...)
	standFor("proxy-max-temp-file-size", true, asWritten, each("max_temp_file_size")...)
	standFor("client-body-buffer-size", false, asWritten, "client_body_buffer_size")
	standFor("proxy-body-size", true, asWritten, "client_max_body_size")
	standFor("proxy-http-version", true, asWritten, "proxy_http_version")
	standFor("proxy-cookie-path", true, cookieRule, "proxy_cookie_path")
	standFor("proxy-cookie-domain", true, cookieRule, "proxy_cookie_domain")
	standFor("proxy-ssl-verify", false, asWritten, "proxy_ssl_verify")
	standFor("proxy-ssl-verify-depth", false, asWritten, "proxy_ssl_verify_depth")
	standFor("proxy-ssl-name", false, asWritten, "proxy_ssl_name")
	standFor("proxy-ssl-server-name", false, asWritten, "proxy_ssl_server_name")
	standFor("proxy-ssl-protocols", false, asWritten, "proxy_ssl_protocols")
	standFor("proxy-ssl-ciphers", false, asWritten, "proxy_ssl_ciphers")
	standFor("satisfy", false, asWritten, "satisfy")
	return all
}

func asWritten(s snippet.Setting) (string, bool) { return strings.Join(s.Arguments, " "), true }

// wholeSeconds rounds a time up.
func wholeSeconds(s snippet.Setting) (string, bool) {
	n, _ := seconds(s.Arguments[0])
	return strconv.Itoa(n), true
}

// seconds reads a time as Parse writes it, rounded up.
func seconds(text string) (int, error) {
	if ms, is := strings.CutSuffix(text, "ms"); is {
		n, err := strconv.Atoi(ms)
		return (n + 999) / 1000, err
	}
	return strconv.Atoi(strings.TrimSuffix(text, "s"))
}

func argument(i int) func(snippet.Setting) (string, bool) {
	return func(s snippet.Setting) (string, bool) { return s.Arguments[i], true }
}

// redirect is an argument of proxy_redirect. The second one may have variables. A single one, "off" or "default", does nothing:
// the name of the backend is that of no Location header.
func redirect(i int) func(snippet.Setting) (string, bool) {
	return func(s snippet.Setting) (string, bool) {
		if len(s.Arguments) == 1 {
			return "off", true
		}
		return s.Arguments[i], !isVariable(s.Values[i]) || i == 1 && taken(s.Arguments[i])
	}
}

// taken reports whether an annotation may have the variables of a text.
func taken(text string) bool {
	_, err := template.Parse(text, false)
	return err == nil
}

// cookieRule is one rule, or off.
func cookieRule(s snippet.Setting) (string, bool) {
	return strings.Join(s.Arguments, " "), !hasVariables(s)
}

func hasVariables(s snippet.Setting) bool {
	return slices.ContainsFunc(s.Values, isVariable)
}

func isVariable(t template.Template) bool {
	return slices.ContainsFunc(t, func(p template.Piece) bool { return p.Variable != "" })
}
