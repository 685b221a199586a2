// Package snippet translates directives of NGINX that tenants write into plain data:
// what the annotations configuration-snippet, server-snippet and auth-snippet mean. None
// of their text becomes part of nginx.conf.
//
// Parse reads a text. What it takes becomes a program.Program, which Lua follows
// (lua/headgate/program.lua and the features that have snippets), and Settings, which the
// features that have the same setting as an annotation follow. What it does not take is
// in Refusals. The package knows the language of NGINX, and no route, feature or file.
package snippet

import (
	"github.com/headgate/headgate/internal/syntax/snippet/program"
	"github.com/headgate/headgate/internal/syntax/template"
)

// A Place is where ingress-nginx puts the text, and with it the directives that may
// stand there.
type Place int

// The places.
const (
	// InLocation is the location of a path: configuration-snippet.
	InLocation Place = iota
	// InServer is the server of a host: server-snippet.
	InServer
	// InAuth is the location that calls the auth service: auth-snippet.
	InAuth
)

// A Snippet is what a text means.
type Snippet struct {
	program.Program
	// Settings are directives at the top level with an annotation, or a value in the
	// profile, that does the same, in their order.
	Settings []Setting
	// Refusals are the directives that are not taken, in their order.
	Refusals []Refusal
	// Warnings are about directives that are taken and do something else than it seems, or
	// nothing.
	Warnings []Warning
	// Defines are the variables that the text sets, sorted. NGINX knows them in all snippets.
	Defines []string
}

// A Setting is a directive that is not followed per request, with its arguments. Times are
// in seconds or milliseconds, as "90s" or "1500ms".
type Setting struct {
	Name      string
	Arguments []string
	// Values are the arguments as templates, where NGINX takes variables in them.
	Values []template.Template
	Line   int
}

// A Refusal is a directive that is not taken.
type Refusal struct {
	// Line is counted from 1.
	Line      int
	Directive string
	// Reason says why, and Instead names what does the same, if there is something.
	Reason, Instead string
	// Effect is what becomes of requests, empty where the directive just has no effect.
	Effect string
	// Guards is set where the directive may control access, or anything that an unknown
	// directive may do: the paths must not be served without it. Where such a directive is
	// in a location or in an if, that block is "return 503" instead and Guards is not set.
	Guards bool
}

// A Warning is about a directive that is taken.
type Warning struct {
	Line      int
	Directive string
	Message   string
	// Idle is set where the directive does nothing, in NGINX as here.
	Idle bool
}
