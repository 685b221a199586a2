// Package answerrewrite replaces names and paths of a backend in its responses by
// those that clients use: in Location and Refresh, and in the domain and path of
// cookies.
package answerrewrite

import (
	"embed"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/syntax/template"
)

const name = "answer_rewrite"

//go:embed *.lua
var lua embed.FS

var (
	redirectFrom = feature.Setting[match]{
		Annotation: "proxy-redirect-from", Key: "proxy-redirect-from", Parse: parseFrom, Risk: feature.Medium,
		Doc: "The text at the start of the Location or Refresh header of a response that proxy-redirect-to replaces. With a leading ~, it is a regular expression, and the whole value of the header is replaced. off and default disable the rewriting.",
	}
	redirectTo = feature.Setting[target]{
		Annotation: "proxy-redirect-to", Key: "proxy-redirect-to", Default: target{text: off}, Parse: parseTarget, Risk: feature.Medium,
		Doc: "The replacement for proxy-redirect-from, which can contain variables: $1 to $9 stand for the groups of the rule's path. off disables the rewriting.",
	}
	cookieDomain = feature.Setting[rule]{
		Annotation: "proxy-cookie-domain", Key: "proxy-cookie-domain", Parse: parseDomain, Risk: feature.Medium,
		Doc: "Replaces the Domain of cookies. The value is the domain to replace, a space and the replacement. Instead of the domain, it can have ~ and a regular expression. Attributes may follow the replacement, as in /; Secure; HttpOnly. off disables the rewriting.",
	}
	cookiePath = feature.Setting[rule]{
		Annotation: "proxy-cookie-path", Key: "proxy-cookie-path", Parse: parsePath, Risk: feature.Medium,
		Doc: "Replaces the start of the Path of cookies. The value is the start to replace, a space and the replacement. Instead of the start, it can have ~ and a regular expression. Attributes may follow the replacement, as in /; Secure; HttpOnly. off disables the rewriting.",
	}
)

// Feature rewrites backends' answers.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     name,
		Doc:      "Rewrites domains and paths in the Location, Refresh and Set-Cookie headers of backends.",
		Settings: []feature.AnySetting{redirectFrom, redirectTo, cookieDomain, cookiePath},
		Route:    route,
		Lua:      lua,
	}
}

// policy is what answerrewrite.lua reads of a route.
type policy struct {
	Redirect *rule `json:"redirect,omitempty"`
	Domain   *rule `json:"domain,omitempty"`
	Path     *rule `json:"path,omitempty"`
}

// A rule replaces one text by another.
type rule struct {
	match
	To string `json:"to"`
	// Template is To where that has variables.
	Template template.Template `json:"template,omitempty"`
}

// A match is a text, or an expression: one of them, or neither for nothing.
type match struct {
	From    string `json:"from,omitempty"`
	Pattern string `json:"pattern,omitempty"`
	// Caseless is set on a case-insensitive pattern.
	Caseless bool `json:"caseless,omitempty"`
}

func route(v feature.Values, out *feature.RouteOut) {
	var p policy
	to := redirectTo.Get(v)
	redirect := rule{redirectFrom.Get(v), to.text, to.template}
	if redirect.To != off {
		p.Redirect = redirect.ifAny()
	}
	noteHalf(v, redirect, out)
	p.Domain, p.Path = cookieDomain.Get(v).ifAny(), cookiePath.Get(v).ifAny()
	if p == (policy{}) {
		return
	}
	feature.Add(out.Route, name, p)
	out.Route.Variant.HeaderFilter = true
}

// noteHalf reports one of the two annotations that rewrite redirects where the other is missing.
func noteHalf(v feature.Values, redirect rule, out *feature.RouteOut) {
	alone := func(s, other feature.AnySetting) {
		if v.IsWritten(s) && !v.IsSet(other) {
			out.Warn(s, finding.NoEffect, "it acts only beside "+other.Spec().Annotation, "it has no effect")
		}
	}
	switch rewrites := redirect.match != (match{}); {
	case rewrites && redirect.To == off:
		alone(redirectFrom, redirectTo)
	case !rewrites && redirect.To != off:
		alone(redirectTo, redirectFrom)
	}
}

func (r rule) ifAny() *rule {
	if r.match == (match{}) {
		return nil
	}
	return &r
}
