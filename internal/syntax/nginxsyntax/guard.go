package nginxsyntax

import (
	"slices"
	"strings"
)

// harmless are directives that decide nothing about access: without them, responses
// lack a header or come in other buffers. A name that ends with "_" stands for all
// that begin with it. Headers of requests are not among them: backends may trust
// those that a snippet removes.
var harmless = []string{
	"access_log", "add_header", "add_trailer", "brotli", "brotli_", "chunked_transfer_encoding", "client_body_buffer_size", "client_body_timeout",
	"client_header_buffer_size", "client_header_timeout", "error_log", "etag", "expires", "gzip", "gzip_", "keepalive_requests", "keepalive_timeout",
	"large_client_header_buffers", "log_not_found", "more_clear_headers", "more_set_headers", "proxy_buffer_size", "proxy_buffering", "proxy_buffers",
	"proxy_busy_buffers_size", "proxy_connect_timeout", "proxy_cookie_domain", "proxy_cookie_flags", "proxy_cookie_path", "proxy_hide_header",
	"proxy_http_version", "proxy_max_temp_file_size", "proxy_pass_header", "proxy_read_timeout", "proxy_request_buffering", "proxy_send_timeout",
	"proxy_temp_file_write_size", "resolver", "resolver_timeout", "send_timeout", "server_tokens", "sub_filter", "sub_filter_", "tcp_nodelay", "tcp_nopush",
	"underscores_in_headers", "variables_hash_bucket_size", "variables_hash_max_size",
}

// harmlessForHTTP are further ones that define something which only another
// snippet uses. Their blocks hold no directives.
var harmlessForHTTP = []string{
	"geo", "geoip2", "limit_conn_zone", "limit_req_zone", "log_format", "lua_shared_dict", "map", "map_hash_bucket_size", "map_hash_max_size", "proxy_cache_path",
	"proxy_headers_hash_bucket_size", "proxy_headers_hash_max_size", "server_names_hash_bucket_size", "server_names_hash_max_size", "split_clients",
	"types_hash_bucket_size", "types_hash_max_size", "upstream",
}

// MayGuard reports whether a text may control access: it has a directive that is not known to be
// harmless, or can't be read. http is set for a text of the http block.
func MayGuard(text string, http bool) bool {
	parsed, err := Parse(text)
	return err != nil || slices.ContainsFunc(parsed, func(d Directive) bool { return !isHarmless(d, http) })
}

func isHarmless(d Directive, http bool) bool {
	if http && slices.Contains(harmlessForHTTP, d.Name) {
		return true
	}
	return !d.HasBlock && slices.ContainsFunc(harmless, func(known string) bool {
		return d.Name == known || strings.HasSuffix(known, "_") && strings.HasPrefix(d.Name, known)
	})
}
