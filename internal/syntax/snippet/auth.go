package snippet

import (
	"fmt"
	"strings"
	"sync"

	"github.com/headgate/headgate/internal/syntax/template"
)

// inAuth are the directives of auth-snippet. Of what the location of the call may have, steps
// and headers act: no response of the auth service reaches a client, and NGINX asks no rules
// for a call.
var inAuth = sync.OnceValue(func() map[string]kind {
	all := map[string]kind{}
	for _, name := range []string{"set", "if", "return", "break", "proxy_set_header"} {
		all[name] = directives()[name]
	}
	for _, name := range []string{
		"add_header", "more_set_headers", "more_clear_headers", "expires", "proxy_hide_header", "proxy_pass_header", "grpc_set_header",
		"auth_request_set", "allow", "deny", "satisfy", "access_log", "limit_rate", "limit_rate_after", "default_type",
	} {
		k := directives()[name]
		k.take = func(p *parser, _ *scope, d *directive) error {
			p.idle(d, "the directive has no effect on the call of an auth service")
			return nil
		}
		all[name] = k
	}
	addIdle(all)
	delete(all, "try_files")
	return all
})

// refusalInAuth is about a directive that other snippets may have.
func (p *parser) refusalInAuth(d *directive) Refusal {
	k, known := p.elsewhere[d.Directive]
	if !known {
		return refusalOf(d)
	}
	return Refusal{
		Line: d.Line, Directive: d.Directive, Guards: k.guards,
		Reason: "the call of an auth service takes set, if, return, break and proxy_set_header only",
	}
}

// variableInAuth is a variable that has another value in the call than in the request: the
// call has no arguments.
func variableInAuth(piece template.Piece) (template.Piece, error) {
	switch piece.Variable {
	case "args", "query_string", "is_args", "arg":
		return template.Piece{}, nil
	case "uri", "document_uri":
		return template.Piece{}, fmt.Errorf("the variable $%s has the path of the call: $request_uri has that of the request", piece.Variable)
	}
	return piece, nil
}

// ownHeaders are those that requests get in any case, in lower case, by place.
func ownHeaders(place Place) string {
	if place == InAuth {
		return "host x-original-url x-original-method x-sent-from x-real-ip x-forwarded-for x-auth-request-redirect x-request-id "
	}
	return "host x-request-id x-real-ip x-forwarded-for x-forwarded-host x-forwarded-port x-forwarded-proto x-forwarded-scheme x-scheme " +
		"x-original-forwarded-for upgrade connection "
}

// warnOwn says that a header is sent twice.
func (p *parser) warnOwn(s *scope, d *directive, name string) {
	if s.in == inLocation {
		p.idle(d, passesNothing)
	} else if strings.Contains(ownHeaders(s.place), strings.ToLower(name)+" ") {
		p.warn(d, "requests have a header %s already: both lines are sent, and servers may refuse that or read the first one", name)
	}
}
