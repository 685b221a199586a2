package unsupported

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

// mayGuard reports whether a snippet may control access: it has a directive that is not
// known to be harmless, or can't be read.
func mayGuard(text string, http bool) bool {
	names, ok := directives(text, http)
	return !ok || slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(harmless, func(known string) bool {
			return name == known || strings.HasSuffix(known, "_") && strings.HasPrefix(name, known)
		}) && !(http && slices.Contains(harmlessForHTTP, name))
	})
}

// directives are the names of the directives of a snippet. It reports false if there is
// a block, unless blocks are passed over, or if the text has no end.
func directives(text string, blocks bool) (names []string, ok bool) {
	depth, begins := 0, true
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			i++
		case c == '#':
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return names, depth == 0 && begins
			}
			i += end
		case c == ';':
			begins = true
			i++
		case c == '{':
			if depth++; !blocks {
				return nil, false
			}
			begins = true
			i++
		case c == '}':
			if depth--; depth < 0 || !begins {
				return nil, false
			}
			i++
		default:
			end := wordEnd(text, i)
			if end < 0 {
				return nil, false
			}
			if begins && depth == 0 {
				names = append(names, text[i:end])
			}
			begins = false
			i = end
		}
	}
	return names, depth == 0 && begins
}

// wordEnd is where the word that begins at i ends, -1 if it has no end.
func wordEnd(text string, i int) int {
	if quote := text[i]; quote == '"' || quote == '\'' {
		for i++; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case quote:
				return i + 1
			}
		}
		return -1
	}
	for ; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '$':
			// ${name} is not a block.
			if i+1 < len(text) && text[i+1] == '{' {
				end := strings.IndexByte(text[i:], '}')
				if end < 0 {
					return -1
				}
				i += end
			}
		case ' ', '\t', '\r', '\n', ';', '{', '}':
			return i
		}
	}
	return min(i, len(text))
}
