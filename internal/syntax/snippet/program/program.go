// Package program has what a snippet becomes: steps, effects and locations as plain data, which Lua follows
// (lua/headgate/program.lua).
package program

import (
	"reflect"

	"github.com/headgate/headgate/internal/syntax/template"
)

// A Program is one block: that of the snippet, or of a location. It is plain data with one
// encoding in JSON.
type Program struct {
	// Steps are the directives of NGINX's rewrite module, in their order.
	Steps []Step `json:"steps,omitempty"`
	// Effects are what else the block, and the blocks of its ifs, say. The first is that of
	// the block itself. Those of an if, and of a location in a location, have what they
	// inherit, as NGINX inherits it; locations in a server do not have what the server says.
	// Empty if there is nothing of that kind.
	Effects []Effects `json:"effects,omitempty"`
	// Locations are those inside of the block, in their order.
	Locations []Location `json:"locations,omitempty"`
}

// A Location is a location block. It has no handler, so a request that its steps let pass
// is answered with 404.
type Location struct {
	// Match is "=", "^~", "~", "~*", "@", or empty for a prefix, and Path what it compares
	// with: a path, an expression, or for "@" a name.
	Match string `json:"match,omitempty"`
	Path  string `json:"path"`
	// Internal is set where clients get 404.
	Internal bool `json:"internal,omitempty"`
	Program
}

// A Step is one directive of the rewrite module. One of Set, If, Return, Rewrite and Break
// says which.
type Step struct {
	// Set is the name of a variable, which gets the value of To.
	Set string `json:"set,omitempty"`
	// If has Then run if the condition holds, and the program's Effects of the index Use, counted from 0, apply from
	// here on, unless that is 0.
	If   *Condition `json:"if,omitempty"`
	Then []Step     `json:"then,omitempty"`
	Use  int        `json:"use,omitempty"`
	// Return is a status, with the text of the body or the URL of the redirect in To. HasTo is
	// set where there is a text, be it empty. For statuses of redirects, To is a URL.
	Return int  `json:"return,omitempty"`
	HasTo  bool `json:"has_to,omitempty"`
	// Rewrite is an expression, and To what replaces the path. Flag is "last", "break",
	// "redirect", "permanent" or empty. NoArguments is set where the arguments of the
	// request are not added.
	Rewrite     string `json:"rewrite,omitempty"`
	Flag        string `json:"flag,omitempty"`
	NoArguments bool   `json:"no_arguments,omitempty"`
	Break       bool   `json:"break,omitempty"`

	To template.Template `json:"to,omitempty"`
}

// A Condition is that of an if: a variable that is neither empty nor "0", or compared. A
// regular expression's groups are available behind it.
type Condition struct {
	// Variable is what is looked at, empty for a variable that is never set.
	Variable template.Template `json:"variable,omitempty"`
	// Is is empty, "=", "!=", "~", "~*", "!~" or "!~*".
	Is string `json:"is,omitempty"`
	// To is what "=" and "!=" compare with.
	To template.Template `json:"to,omitempty"`
	// Expression is that of the others.
	Expression string `json:"expression,omitempty"`
}

// Effects are what a block says besides steps and locations.
type Effects struct {
	// AddHeaders are those of add_header.
	AddHeaders []AddHeader `json:"add_headers,omitempty"`
	// Expires is the directive expires.
	Expires *Expires `json:"expires,omitempty"`
	// ResponseHeaders are those of more_set_headers and more_clear_headers, in order.
	ResponseHeaders []MoreHeader `json:"response_headers,omitempty"`
	// HideHeaders and PassHeaders are those of proxy_hide_header and proxy_pass_header, in
	// lower case.
	HideHeaders []string `json:"hide_headers,omitempty"`
	PassHeaders []string `json:"pass_headers,omitempty"`

	// RequestHeaders are those of proxy_set_header, GRPCHeaders those of grpc_set_header:
	// those with an empty value are not sent.
	RequestHeaders []Header `json:"request_headers,omitempty"`
	GRPCHeaders    []Header `json:"grpc_headers,omitempty"`
	// InputHeaders are those of more_set_input_headers and more_clear_input_headers, in order.
	InputHeaders []MoreHeader `json:"input_headers,omitempty"`
	// AuthVariables are those of auth_request_set: a variable gets a value when the auth
	// service has answered.
	AuthVariables []Variable `json:"auth_variables,omitempty"`

	// Rules are those of allow and deny, in order: the first one that has the client's
	// address decides.
	Rules []Rule `json:"rules,omitempty"`
	// Methods is that of limit_except, nil if there is none.
	Methods *MethodRules `json:"methods,omitempty"`

	// ErrorPages are those of error_page, in order.
	ErrorPages []ErrorPage `json:"error_pages,omitempty"`
	// LimitRate and LimitRateAfter are in bytes as text, which variables may give.
	LimitRate      template.Template `json:"limit_rate,omitempty"`
	LimitRateAfter template.Template `json:"limit_rate_after,omitempty"`
	// DefaultType is the media type of what the block itself answers.
	DefaultType string `json:"default_type,omitempty"`
	// Unlogged is access_log off. It is not a Setting, since locations and ifs may have it.
	Unlogged bool `json:"unlogged,omitempty"`
}

// Empty reports whether there is no effect.
func (e *Effects) Empty() bool { return reflect.ValueOf(*e).IsZero() }

// Inherit adds what a block has of the one around it, as NGINX does: the directives of
// headers-more are added, all others replace those of the outer block.
func (e *Effects) Inherit(outer *Effects) {
	if outer == nil {
		return
	}
	e.ResponseHeaders = concat(outer.ResponseHeaders, e.ResponseHeaders)
	e.InputHeaders = concat(outer.InputHeaders, e.InputHeaders)
	own, from := reflect.ValueOf(e).Elem(), reflect.ValueOf(outer).Elem()
	for i := range own.NumField() {
		if name := own.Type().Field(i).Name; own.Field(i).IsZero() && name != "Methods" {
			own.Field(i).Set(from.Field(i))
		}
	}
}

func concat[T any](outer, own []T) []T {
	if len(outer)+len(own) == 0 {
		return nil
	}
	return append(append(make([]T, 0, len(outer)+len(own)), outer...), own...)
}

// A Header is a name and what it is set to.
type Header struct {
	Name  string            `json:"name"`
	Value template.Template `json:"value,omitempty"`
}

// An AddHeader is a header of add_header. Without Always it is added to responses of the
// statuses 200, 201, 204, 206, 301, 302, 303, 304, 307 and 308 only.
type AddHeader struct {
	Header
	Always bool `json:"always,omitempty"`
}

// A MoreHeader is a header of a directive of the module headers-more.
type MoreHeader struct {
	Header
	// Clear removes the header. Its name may end with an asterisk, which stands for any
	// text.
	Clear bool `json:"clear,omitempty"`
	// Statuses and Types limit it to responses of these (-s, -t); empty for all.
	Statuses []int    `json:"statuses,omitempty"`
	Types    []string `json:"types,omitempty"`
	// Present limits it to headers that are there already (-r), Append adds one beside
	// those that are there (-a).
	Present bool `json:"present,omitempty"`
	Append  bool `json:"append,omitempty"`
}

// A Variable is a name and a value.
type Variable struct {
	Name  string            `json:"name"`
	Value template.Template `json:"value"`
}

// A Rule allows or denies addresses.
type Rule struct {
	Allow bool `json:"allow,omitempty"`
	// Network is an address or a network in CIDR notation, "all", or "unix:".
	Network string `json:"network"`
}

// MethodRules are the rules for all methods but some; GET allows HEAD as well. Requests
// with the other methods skip the steps of the block.
type MethodRules struct {
	// Except are in capitals.
	Except []string `json:"except"`
	Rules  []Rule   `json:"rules,omitempty"`
}

// An ErrorPage is what a response of some statuses is replaced with. The first one of a
// status counts.
type ErrorPage struct {
	Statuses []int `json:"statuses"`
	// Status is that of the response then: 0 keeps it, and -1 takes that of what answers.
	Status int `json:"status,omitempty"`
	// Name is a named location, without "@"; To a path or a URL.
	Name string            `json:"name,omitempty"`
	To   template.Template `json:"to,omitempty"`
}

// Expires is the directive expires.
type Expires struct {
	// Kind is "off", "epoch", "max", "in" (Seconds from now), "modified" (Seconds behind
	// Last-Modified) or "at" (Seconds since midnight). With a Value, which gives any of these
	// as text, it is "in" or "modified", and Seconds is not set.
	Kind    string            `json:"kind"`
	Seconds int               `json:"seconds,omitempty"`
	Value   template.Template `json:"value,omitempty"`
}

// Variables that templates of a Program may have besides those of every template, see
// template.Template. Package headgate.program in Lua has a function for each kind.
const (
	// Own is a variable that the snippet sets itself: by set, auth_request_set, or as a
	// named group of an expression. The piece's Name is its name.
	Own = "own"
	// Capture is a group of the expression that matched last. The piece's Name is a digit
	// from 0 to 9.
	Capture = "capture"
	// UpstreamHeader is a header of the backend's or, in auth_request_set, the auth service's
	// response, and UpstreamCookie a cookie that it sets. The piece's Name is in lower case,
	// a header's with underscores.
	UpstreamHeader = "upstream_http"
	UpstreamCookie = "upstream_cookie"
	// SentHeader is a header of the response to the client, named like UpstreamHeader.
	SentHeader = "sent_http"
	// Administrator is a variable that the administrator's text defines. The piece's Name is
	// its name.
	Administrator = "administrator"
)
