package snippet

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/syntax/snippet/program"
	"github.com/headgate/headgate/internal/syntax/template"
)

// builtIn are the variables of NGINX, and of ingress-nginx's locations, that a snippet may
// read. Each has a function in Lua. There is no other way to a variable by its name: some
// hold secrets.
var builtIn = []string{
	"args", "best_http_host", "binary_remote_addr", "body_bytes_sent", "bytes_sent", "connection", "connection_requests", "content_length",
	"content_type", "document_uri", "escaped_request_uri", "host", "hostname", "http_host", "https", "ingress_name", "is_args", "limit_rate",
	"location_path", "msec", "namespace", "nginx_version", "pass_access_scheme", "pass_port", "pass_server_port", "pid", "proxy_add_x_forwarded_for",
	"proxy_upstream_name", "query_string", "realip_remote_addr", "realip_remote_port", "remote_addr", "remote_port", "remote_user", "req_id",
	"request", "request_completion", "request_id", "request_length", "request_method", "request_time", "request_uri", "scheme", "server_addr",
	"server_name", "server_port", "server_protocol", "service_name", "service_port", "ssl_cipher", "ssl_client_cert",
	"ssl_client_escaped_cert", "ssl_client_fingerprint", "ssl_client_i_dn", "ssl_client_raw_cert", "ssl_client_s_dn", "ssl_client_serial",
	"ssl_client_v_end", "ssl_client_v_remain", "ssl_client_v_start", "ssl_client_verify", "ssl_protocol", "ssl_server_name",
	"ssl_session_reused", "status", "the_real_ip", "time_iso8601", "time_local", "upstream_addr", "upstream_bytes_received",
	"upstream_cache_status", "upstream_connect_time", "upstream_header_time", "upstream_response_length", "upstream_response_time",
	"upstream_status", "uri",
}

// families are variables with a name behind a prefix.
var families = []string{program.UpstreamHeader, program.UpstreamCookie, program.SentHeader, "http", "arg", "cookie"}

// variable returns the piece for a variable's name in lower case: NGINX compares them so.
func (p *parser) variable(name string) (template.Piece, error) {
	switch {
	case p.own[name]:
		return template.Piece{Variable: program.Own, Name: name}, nil
	case slices.Contains(p.options.Administrator, name):
		return template.Piece{Variable: program.Administrator, Name: name}, nil
	case slices.Contains(builtIn, name):
		return p.inPlace(template.Piece{Variable: name})
	}
	for _, family := range families {
		if of, ok := strings.CutPrefix(name, family+"_"); ok && of != "" {
			return p.inPlace(template.Piece{Variable: family, Name: of})
		}
	}
	return template.Piece{}, fmt.Errorf("unknown variable %q", "$"+name)
}

func (p *parser) inPlace(piece template.Piece) (template.Piece, error) {
	if p.place == InAuth {
		return variableInAuth(piece)
	}
	return piece, nil
}

// template reads a text with variables as NGINX does.
func (p *parser) template(text string) (template.Template, error) {
	var t template.Template
	for text != "" {
		at := strings.IndexByte(text, '$')
		if at < 0 {
			return append(t, template.Piece{Literal: text}), nil
		}
		if at > 0 {
			t = append(t, template.Piece{Literal: text[:at]})
		}
		piece, rest, err := p.piece(text[at+1:])
		if err != nil {
			return nil, err
		}
		if text = rest; piece != (template.Piece{}) {
			t = append(t, piece)
		}
	}
	return t, nil
}

// piece reads what follows a dollar sign.
func (p *parser) piece(text string) (template.Piece, string, error) {
	if text != "" && text[0] >= '1' && text[0] <= '9' {
		return template.Piece{Variable: program.Capture, Name: text[:1]}, text[1:], nil
	}
	name, rest, braces := text, "", strings.HasPrefix(text, "{")
	if braces {
		var closed bool
		if name, rest, closed = strings.Cut(text[1:], "}"); !closed || !isName(name) {
			return template.Piece{}, "", fmt.Errorf(`the closing bracket in "$%s" is missing`, text)
		}
	} else {
		end := 0
		for end < len(text) && isName(text[end:end+1]) {
			end++
		}
		name, rest = text[:end], text[end:]
	}
	if name == "" {
		return template.Piece{}, "", fmt.Errorf(`invalid variable name in "$%s"`, text)
	}
	piece, err := p.variable(strings.ToLower(name))
	return piece, rest, err
}

// namedGroup finds the names of groups in an expression.
var namedGroup = regexp.MustCompile(`\(\?(?:P?<|')([A-Za-z_][A-Za-z0-9_]*)[>']`)

// define notes the variables that a directive defines.
func (p *parser) define(d *directive) {
	expression := ""
	switch {
	case len(d.Args) == 0:
	case (d.Directive == "set" || d.Directive == "auth_request_set") && strings.HasPrefix(d.Args[0], "$"):
		p.own[strings.ToLower(d.Args[0][1:])] = true
	case d.Directive == "rewrite":
		expression = d.Args[0]
	case d.Directive == "if" || d.Directive == "location":
		expression = d.Args[len(d.Args)-1]
	}
	for _, name := range namedGroup.FindAllStringSubmatch(expression, -1) {
		p.own[strings.ToLower(name[1])] = true
	}
}
