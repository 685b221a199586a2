package snippet

import (
	"errors"
	"fmt"
	"strings"

	crossplane "github.com/nginxinc/nginx-go-crossplane"

	"github.com/headgate/headgate/internal/syntax/snippet/argument"
)

// addIdle adds directives that are taken because there is nothing for them to do: Headgate
// has no files and no cache, or does what they say in any case.
func addIdle(all map[string]kind) {
	add := func(check func([]string) ([]string, error), names ...string) {
		take := func(_ *parser, _ *scope, d *directive) error {
			_, err := check(d.Args)
			if r, listed := listedRefusal(d.Directive); err != nil && listed {
				return errors.New(r.reason)
			}
			return err
		}
		for _, name := range names {
			all[name] = kind{in: anywhere, least: 1, most: many, take: take}
		}
	}
	add(argument.Any, "etag", "log_not_found", "log_subrequest", "if_modified_since", "max_ranges", "tcp_nodelay", "tcp_nopush", "sendfile",
		"sendfile_max_chunk", "rewrite_log", "uninitialized_variable_warn", "open_file_cache", "open_file_cache_errors",
		"open_file_cache_min_uses", "open_file_cache_valid", "output_buffers", "postpone_output", "aio", "directio", "read_ahead",
		"types_hash_max_size", "types_hash_bucket_size", "proxy_headers_hash_max_size", "proxy_headers_hash_bucket_size",
		"proxy_cache_bypass", "proxy_no_cache", "http2_max_field_size", "http2_max_header_size", "http2_max_requests",
		"http2_idle_timeout", "http2_recv_timeout", "resolver", "resolver_timeout")
	add(argument.OneOf("off"), "server_tokens", "proxy_cache", "recursive_error_pages", "port_in_redirect", "server_name_in_redirect",
		"msie_padding", "msie_refresh", "autoindex", "ssi", "charset")
	add(argument.OneOf("on"), "absolute_redirect", "merge_slashes")
	all["try_files"] = kind{in: inLocation, least: 2, most: many, take: (*parser).tryFiles}
}

// tryFiles takes a list of files that ends with a status of 404, which a location without
// files answers in any case.
func (p *parser) tryFiles(_ *scope, d *directive) error {
	if d.Args[len(d.Args)-1] != "=404" {
		return fmt.Errorf(`there are no files: the last parameter must be "=404"`)
	}
	p.idle(d, "there are no files: what nothing else answers gets 404 in any case")
	return nil
}

// A refused is a reason why directives are refused.
type refused struct {
	names           string
	reason, instead string
	// guards is set where they may control access, and handles where they answer requests.
	guards, handles bool
}

func refusals() []refused {
	return []refused{
		{names: "proxy_pass grpc_pass fastcgi_pass uwsgi_pass scgi_pass memcached_pass", reason: "requests go to the backend that the Ingress names",
			instead: "a path of an Ingress with that Service, mirror-target: \"http://SERVICE.NAMESPACE.svc/\" or canary: \"true\"", handles: true},
		{names: "root alias index autoindex autoindex_* add_before_body add_after_body try_files types", reason: "there are no files to serve"},
		{names: "*_by_lua *_by_lua_block *_by_lua_file lua_* perl perl_* js_*", reason: "programs of tenants are not run", guards: true, handles: true},
		{names: "set_* array_* encrypted_*", reason: "the module is not part of Headgate", guards: true},
		{names: "proxy_cache* proxy_store* fastcgi_cache* grpc_cache*", reason: "there is no cache of responses"},
		{names: "server_tokens", reason: "the version of NGINX is shown by a key for all hosts", instead: "the key server-tokens of the ConfigMap"},
		{names: "include", reason: "files are not read", guards: true},
		{names: "auth_request", reason: "another service is asked by annotations", instead: "auth-url: \"http://SERVICE.NAMESPACE.svc/PATH\"", guards: true},
		{names: "auth_basic auth_basic_user_file auth_delay", reason: "passwords are in Secrets", instead: "auth-type: \"basic\" and auth-secret: \"SECRET\"", guards: true},
		{names: "modsecurity modsecurity_*", reason: "the firewall is switched by annotations", instead: "enable-modsecurity: \"true\" and modsecurity-snippet: \"SecRuleEngine On\"", guards: true},
		{names: "opentelemetry opentelemetry_* opentracing opentracing_* otel_*", reason: "tracing is switched by annotations", instead: "enable-opentelemetry: \"true\""},
		{names: "mirror mirror_request_body", reason: "copies of requests are sent by annotations", instead: "mirror-target: \"http://SERVICE.NAMESPACE.svc/\" and mirror-request-body: \"off\""},
		{names: "ssl_verify_client ssl_verify_depth ssl_client_certificate ssl_trusted_certificate ssl_crl ssl_ocsp*", reason: "clients' certificates are checked by annotations",
			instead: "auth-tls-secret: \"NAMESPACE/SECRET\" and auth-tls-verify-client: \"on\"", guards: true},
		{names: "ssl_ciphers ssl_prefer_server_ciphers", reason: "the ciphers of a host are set by annotations", instead: "ssl-ciphers: \"ECDHE-RSA-AES128-GCM-SHA256\" and ssl-prefer-server-ciphers: \"true\""},
		{names: "ssl_*", reason: "TLS with clients is set for all hosts", instead: "the keys of the ConfigMap that begin with ssl-"},
		{names: "proxy_ssl_certificate proxy_ssl_certificate_key proxy_ssl_trusted_certificate proxy_ssl_crl proxy_ssl_password_file", reason: "certificates are in Secrets",
			instead: "proxy-ssl-secret: \"NAMESPACE/SECRET\"", guards: true},
		{names: "server_name", reason: "names of hosts are in the Ingress", instead: "a host of the Ingress, or server-alias: \"NAME\""},
		{names: "listen", reason: "ports are the administrator's", instead: "the flags --http-port and --https-port"},
		{names: "error_log access_log log_format", reason: "logs are the administrator's", instead: "enable-access-log: \"false\""},
		{names: "proxy_bind proxy_set_body proxy_temp_path client_body_temp_path client_body_in_file_only client_body_in_single_buffer proxy_limit_rate", reason: "it can't be set for a path"},
		{names: "charset charset_types source_charset override_charset", reason: "character sets are not converted", instead: "more_set_headers \"Content-Type: text/html; charset=utf-8\""},
		{names: "brotli brotli_*", reason: "compression by Brotli is set for all hosts", instead: "the key enable-brotli of the ConfigMap"},
		{names: "lingering_* keepalive_* reset_timedout_connection client_* http2_*", reason: "connections are set for all hosts", instead: "the ConfigMap"},
		{names: "stub_status empty_gif flv mp4 dav_* slice", reason: "the module is not part of Headgate", handles: true},
	}
}

// refusalOf is about a directive that is not taken.
func refusalOf(d *directive) Refusal {
	r := Refusal{Line: d.Line, Directive: d.Directive, Guards: true}
	if list, ok := listedRefusal(d.Directive); ok {
		r.Reason, r.Instead, r.Guards = list.reason, list.instead, list.guards || list.handles
		if joinsCookies(d) {
			r.Reason += "; this one is not needed: clients get each cookie of the auth service by itself. Remove the block"
		}
	} else if r.Reason = "the directive is not supported"; !isKnown(d.Directive) {
		r.Reason = "unknown directive"
	}
	return r
}

// joinsCookies recognises the program in the documentation of oauth2-proxy, by which clients get a cookie
// that is in parts.
func joinsCookies(d *directive) bool {
	text := strings.Join(d.Args, " ")
	return d.Directive == "access_by_lua_block" && strings.Contains(text, "Set-Cookie") && strings.Contains(text, "auth_cookie")
}

// listedRefusal is the first one of a directive.
func listedRefusal(name string) (refused, bool) {
	for _, list := range refusals() {
		for pattern := range strings.FieldsSeq(list.names) {
			before, behind, wildcard := strings.Cut(pattern, "*")
			if name == pattern || wildcard && strings.HasPrefix(name, before) && strings.HasSuffix(name, behind) {
				return list, true
			}
		}
	}
	return refused{}, false
}

func isKnown(name string) bool {
	for _, match := range sources() {
		if _, ok := match(name); ok {
			return true
		}
	}
	return false
}

// sources say which directives there are, and where they may stand.
func sources() []crossplane.MatchFunc {
	return []crossplane.MatchFunc{crossplane.MatchOss126, crossplane.MatchHeadersMoreLatest, crossplane.MatchLuaLatest, crossplane.MatchGeoip2Latest}
}
