// Package template reads texts with variables, which the data plane fills in.
//
// It knows which variables there are, and must not know what texts are used for.
package template

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model/geo"
)

// A Template is a parsed text with variables. The data plane fills it in for each
// request (lua/headgate/template.lua), and never looks up a variable by a name that a
// tenant wrote.
type Template []Piece

// A Piece is a literal text, or a variable. Of the kinds "arg", "cookie", "http"
// and "group" a variable has a Name: that of the argument, the cookie, the
// header (lower case, with underscores) or the group of the route's path.
type Piece struct {
	Literal  string
	Variable string
	Name     string
}

// MarshalJSON writes a literal as a text and a variable as a list.
func (p Piece) MarshalJSON() ([]byte, error) {
	switch {
	case p.Variable == "":
		return json.Marshal(p.Literal)
	case p.Name == "":
		return json.Marshal([]string{p.Variable})
	}
	return json.Marshal([]string{p.Variable, p.Name})
}

// variables are those that a template may hold, besides $arg_NAME, $cookie_NAME
// and $http_NAME. They are those that users of ingress-nginx write; other
// variables of NGINX are not available, since some have secrets.
var variables = []string{
	"args", "best_http_host", "escaped_request_uri", "host", "http_host", "ingress_name", "is_args", "location_path",
	"namespace", "pass_access_scheme", "pass_port", "pass_server_port", "query_string", "remote_addr", "remote_user", "req_id", "request_id",
	"request_method", "request_uri", "scheme", "server_port", "service_name", "service_port", "the_real_ip", "uri",
}

// ListVariables names those that every template may hold, with further ones.
func ListVariables(further []string) string {
	return "$" + strings.Join(slices.Sorted(slices.Values(slices.Concat(further, variables))), ", $") + ", $arg_NAME, $cookie_NAME and $http_NAME"
}

var (
	// NGINX reads one digit as the number of a group, also before other digits.
	variableForm = regexp.MustCompile(`\$(?:\{([A-Za-z0-9_]+)\}|([0-9])|([A-Za-z0-9_]+))?`)
	groupName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
)

// Parse parses a text. $1 to $9 are groups of the route's path. With names,
// any other variable is the group of that name.
func Parse(text string, names bool) (Template, error) { return parse(text, names, nil) }

// ParseWith parses a text that may have further variables, for which the feature
// gives the data plane functions.
func ParseWith(text string, further []string) (Template, error) {
	return parse(text, false, further)
}

func parse(text string, names bool, further []string) (Template, error) {
	var t Template
	literal := func(text string) {
		if text != "" {
			t = append(t, Piece{Literal: text})
		}
	}
	rest := 0
	for _, at := range variableForm.FindAllStringSubmatchIndex(text, -1) {
		literal(text[rest:at[0]])
		rest = at[1]
		name := ""
		for i := 2; i < len(at); i += 2 {
			if at[i] >= 0 {
				name = text[at[i]:at[i+1]]
			}
		}
		piece, ok := variable(name, names)
		if slices.Contains(further, name) {
			piece, ok = Piece{Variable: name}, true
		}
		if !ok && strings.HasPrefix(name, geoPrefix) {
			return nil, fmt.Errorf("variable $%s is not supported: must be one of $%s", finding.Cut(name, finding.MaxValue), strings.Join(geo.Variables(), ", $"))
		}
		if !ok {
			return nil, fmt.Errorf("variable $%s is not supported: must be one of $%s, $arg_NAME, $cookie_NAME and $http_NAME",
				finding.Cut(name, finding.MaxValue), strings.Join(slices.Concat(further, variables), ", $"))
		}
		t = append(t, piece)
	}
	literal(text[rest:])
	return t, nil
}

// geoPrefix is that of the variables of geo.Variables, which are empty unless addresses of clients are looked up.
const geoPrefix = "geoip2_"

func variable(name string, names bool) (Piece, bool) {
	if slices.Contains(variables, name) || strings.HasPrefix(name, geoPrefix) && slices.Contains(geo.Variables(), name) {
		return Piece{Variable: name}, true
	}
	for _, kind := range []string{"arg", "cookie", "http"} {
		if of, ok := strings.CutPrefix(name, kind+"_"); ok && of != "" {
			return Piece{Variable: kind, Name: of}, true
		}
	}
	return Piece{Variable: "group", Name: name}, len(name) == 1 && name[0] >= '0' && name[0] <= '9' || names && groupName.MatchString(name)
}
