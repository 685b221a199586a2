package mirror

import (
	"errors"
	"regexp"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/address"
	"github.com/headgate/headgate/internal/syntax/template"
)

// A target is the value of mirror-target.
type target struct {
	text string
	call model.Call
	uri  template.Template
	// pathVaries is set where there is a variable before the query.
	pathVaries bool
}

const (
	maxTarget = 4096
	maxHost   = 1000
)

var (
	checkTarget = feature.Matching(`^[A-Za-z0-9\-._~:/?#\[\]@$&()*+,={}%]*$`, maxTarget,
		"must be at most 4096 letters, digits and -._~:/?#[]@$&()*+,={}%")
	checkHost = feature.Matching(`^[A-Za-z0-9\-._:\[\]${}]*$`, maxHost, "must be at most 1000 letters, digits, -._:[] and variables such as $host")

	// ownPath are variables that begin with a slash, so that they may stand right behind the host.
	ownPath = regexp.MustCompile(`\$(request_uri|uri)\b|\$\{(request_uri|uri)\}`)
)

// parseTarget reads "http://HOST[:PORT][/PATH][?QUERY]", with variables in path and query.
// There is none in the host: clients could choose where requests are sent. Without variables and a
// query of its own, the copy has the query of the request.
func parseTarget(text string) (target, error) {
	if _, err := checkTarget(text); err != nil {
		return target{}, err
	}
	rest, secure, err := address.Scheme(text)
	if err != nil {
		return target{}, err
	}
	rest, _, _ = strings.Cut(rest, "#")
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	if at := ownPath.FindStringIndex(rest); at != nil {
		end = min(end, at[0])
	}
	call, err := address.Authority(rest[:end], secure)
	if err != nil {
		return target{}, err
	}
	if strings.Contains(call.Host, "$") {
		return target{}, errors.New("must not have a variable in the host: only path and query can have some")
	}
	call.Name = model.MirrorCall
	uri := rest[end:]
	switch {
	case uri == "":
		uri = "$request_uri"
	case uri[0] == '?':
		uri = "/" + uri
	}
	var varies bool
	call.Path, varies = address.PathOf(uri)
	if !strings.ContainsAny(uri, "$?") {
		// NGINX passes the query on behind a URL without variables.
		uri += "$is_args$args"
	}
	template, err := parseTemplate(uri)
	if err != nil {
		return target{}, err
	}
	return target{text, call, template, varies}, nil
}

func parseHost(text string) (template.Template, error) {
	if _, err := checkHost(text); err != nil {
		return nil, err
	}
	return parseTemplate(text)
}

// parseTemplate parses a text in which braces stand around names of variables only.
func parseTemplate(text string) (template.Template, error) {
	template, err := template.Parse(text, false)
	if err != nil {
		return nil, err
	}
	for _, piece := range template {
		if strings.ContainsAny(piece.Literal, "{}") {
			return nil, errors.New("must have braces only around the name of a variable")
		}
	}
	return template, nil
}
