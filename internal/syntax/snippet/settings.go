package snippet

import (
	"github.com/headgate/headgate/internal/syntax/snippet/argument"
)

// A setting is a directive that becomes a Setting.
type setting struct {
	// least and most are how many arguments it has: one, if both are 0.
	least, most int
	check       func([]string) ([]string, error)
	// server is set where it may stand in a server only.
	server bool
	// many is set where NGINX allows several.
	many bool
	// guards is set where the paths must not be served without it.
	guards bool
	// variables is set where the arguments may have variables.
	variables bool
}

func settings() map[string]setting {
	all := map[string]setting{
		"client_max_body_size":   {check: argument.Offset},
		"gzip_disable":           {least: 1, most: many, check: argument.Expressions, many: true},
		"gzip_comp_level":        {check: argument.Number(1, 9)},
		"gzip_min_length":        {check: argument.Number(0, 1<<31-1)},
		"gzip_proxied":           {least: 1, most: many, check: argument.OneOf("off", "expired", "no-cache", "no-store", "private", "no_last_modified", "no_etag", "auth", "any"), many: true},
		"gzip_http_version":      {check: argument.OneOf("1.0", "1.1")},
		"keepalive_requests":     {check: argument.Number(0, 1<<31-1)},
		"keepalive_timeout":      {least: 1, most: 2, check: argument.Time},
		"limit_req":              {least: 1, most: 4, check: argument.LimitReq, many: true, guards: true},
		"limit_conn":             {least: 2, most: 2, check: argument.LimitConn, many: true, guards: true},
		"proxy_http_version":     {check: argument.OneOf("1.0", "1.1")},
		"proxy_ssl_verify_depth": {check: argument.Number(0, 1<<31-1), guards: true},
		"proxy_ssl_verify":       {check: argument.Flag, guards: true},
		"proxy_ssl_name":         {check: argument.Any, guards: true, variables: true},
		"proxy_ssl_ciphers":      {check: argument.Any, guards: true},
		"proxy_ssl_protocols":    {least: 1, most: many, check: argument.OneOf("SSLv2", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"), many: true, guards: true},
		"satisfy":                {check: argument.OneOf("all", "any"), guards: true},

		"large_client_header_buffers": {least: 2, most: 2, check: argument.Buffers, server: true},
		"client_header_buffer_size":   {check: argument.Size, server: true},
		"client_header_timeout":       {check: argument.Time, server: true},
		"underscores_in_headers":      {check: argument.Flag, server: true},
		"ignore_invalid_headers":      {check: argument.Flag, server: true},
		"real_ip_header":              {check: argument.Any, guards: true},
		"real_ip_recursive":           {check: argument.Flag, guards: true},
		"set_real_ip_from":            {check: argument.Trusted, many: true, guards: true},
	}
	add := func(s setting, names ...string) {
		for _, name := range names {
			all[name] = s
		}
	}
	add(setting{check: argument.Time}, "proxy_connect_timeout", "proxy_read_timeout", "proxy_send_timeout", "proxy_next_upstream_timeout",
		"grpc_connect_timeout", "grpc_read_timeout", "grpc_send_timeout", "grpc_next_upstream_timeout",
		"fastcgi_connect_timeout", "fastcgi_read_timeout", "fastcgi_send_timeout", "fastcgi_next_upstream_timeout",
		"client_body_timeout", "send_timeout")
	add(setting{check: argument.Size}, "proxy_buffer_size", "grpc_buffer_size", "fastcgi_buffer_size", "proxy_busy_buffers_size",
		"fastcgi_busy_buffers_size", "client_body_buffer_size", "proxy_max_temp_file_size", "proxy_temp_file_write_size",
		"fastcgi_max_temp_file_size", "fastcgi_temp_file_write_size")
	add(setting{least: 2, most: 2, check: argument.Buffers}, "proxy_buffers", "fastcgi_buffers", "gzip_buffers")
	add(setting{check: argument.Flag}, "proxy_buffering", "proxy_request_buffering", "proxy_intercept_errors", "proxy_ignore_client_abort",
		"proxy_force_ranges", "proxy_socket_keepalive", "proxy_pass_request_headers", "proxy_pass_request_body", "proxy_ssl_server_name",
		"proxy_ssl_session_reuse", "fastcgi_buffering", "fastcgi_request_buffering", "fastcgi_intercept_errors", "grpc_intercept_errors",
		"grpc_socket_keepalive", "gzip", "gzip_vary", "gunzip", "chunked_transfer_encoding", "sub_filter_once", "sub_filter_last_modified",
		"limit_req_dry_run", "limit_conn_dry_run")
	add(setting{check: argument.Number(400, 599)}, "limit_req_status", "limit_conn_status")
	add(setting{check: argument.OneOf("info", "notice", "warn", "error")}, "limit_req_log_level", "limit_conn_log_level")
	add(setting{check: argument.Number(0, 1<<31-1)}, "proxy_next_upstream_tries", "grpc_next_upstream_tries", "fastcgi_next_upstream_tries")
	failures := []string{"error", "timeout", "invalid_header", "http_500", "http_503", "http_403", "http_404", "http_429", "non_idempotent", "off"}
	add(setting{least: 1, most: many, check: argument.OneOf(failures...), many: true}, "fastcgi_next_upstream")
	failures = append(failures, "http_502", "http_504")
	add(setting{least: 1, most: many, check: argument.OneOf(failures...), many: true}, "proxy_next_upstream", "grpc_next_upstream")
	add(setting{least: 1, most: many, check: argument.MediaTypes, many: true}, "gzip_types", "sub_filter_types")
	add(setting{
		least: 1, most: many, check: argument.OneOf("X-Accel-Redirect", "X-Accel-Expires", "X-Accel-Limit-Rate", "X-Accel-Buffering", "X-Accel-Charset", "Expires",
			"Cache-Control", "Set-Cookie", "Vary"), many: true,
	}, "proxy_ignore_headers")
	add(setting{least: 1, most: 2, check: argument.Cookie, many: true, variables: true}, "proxy_cookie_path", "proxy_cookie_domain")
	add(setting{least: 1, most: 2, check: argument.Redirect, many: true, variables: true}, "proxy_redirect")
	add(setting{least: 1, most: 5, check: argument.CookieFlags, many: true, variables: true}, "proxy_cookie_flags")
	add(setting{least: 2, most: 2, check: argument.Any, many: true, variables: true}, "sub_filter")
	add(setting{check: argument.Any, variables: true}, "proxy_method")
	return all
}

// passesNothing is about what acts on requests to a backend, in a location of the snippet's own.
const passesNothing = "the location passes no requests on, so the directive has no effect"

// takeSetting takes a setting. In a location of the snippet's own there is nothing that it
// could act on.
func (s setting) takeSetting(p *parser, at *scope, d *directive) error {
	arguments, err := s.check(d.Args)
	if err != nil {
		return err
	}
	of := Setting{Name: d.Directive, Arguments: arguments, Line: d.Line}
	if s.variables {
		for _, text := range arguments {
			value, err := p.template(text)
			if err != nil {
				return err
			}
			of.Values = append(of.Values, value)
		}
	}
	if at.in == inLocation {
		p.idle(d, passesNothing)
		return nil
	}
	p.out.Settings = append(p.out.Settings, of)
	return nil
}

// addSettings adds the settings to the directives that are taken.
func addSettings(all map[string]kind) {
	for name, s := range settings() {
		k := kind{in: locations | atServer, least: max(s.least, 1), most: s.most, once: !s.many, guards: s.guards, take: s.takeSetting}
		if s.most == 0 {
			k.most = 1
		}
		if s.server {
			k.in = atServer
		}
		all[name] = k
	}
}
