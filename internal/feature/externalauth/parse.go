package externalauth

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/names"
	"github.com/headgate/headgate/internal/syntax/address"
	"github.com/headgate/headgate/internal/syntax/header"
	"github.com/headgate/headgate/internal/syntax/template"
)

// A target is the value of auth-url.
type target struct {
	text string
	call model.Call
	uri  template.Template
	// bare is set where the URL ends behind the host, pathVaries where there is a variable
	// before the query.
	bare, pathVaries bool
}

func (t target) set() bool { return t.text != "" }

func (t target) String() string { return t.text }

const maxURL = 4096

var checkURL = feature.Matching(`^[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=% ]*$`, maxURL,
	"must be at most 4096 letters, digits and -._~:/?#[]@!$&'()*+,;=%")

// parseURL reads "http://HOST[:PORT][/PATH][?QUERY]", with variables in path
// and query. The host may be $host, and no other variable: with
// one that clients set, they could choose the service that authenticates them.
func parseURL(text string) (target, error) {
	if text == "" {
		return target{}, errors.New("must not be empty: without an auth service, remove the annotation")
	}
	if _, err := checkURL(text); err != nil {
		return target{}, err
	}
	rest, secure, err := address.Scheme(text)
	if err != nil {
		return target{}, err
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	call, err := parseAuthority(rest[:end], secure)
	if err != nil {
		return target{}, err
	}
	uri, _, _ := strings.Cut(rest[end:], "#")
	bare := uri == ""
	if !strings.HasPrefix(uri, "/") {
		uri = "/" + uri
	}
	template, err := template.Parse(strings.ReplaceAll(uri, " ", "%20"), false)
	if err != nil {
		return target{}, err
	}
	var varies bool
	call.Path, varies = address.PathOf(uri)
	return target{text, call, template, bare, varies}, nil
}

// ofHost are the variables for the name that the client asked for. Clients can't
// choose it freely: their request was routed by it.
var ofHost = []string{"$host", "$http_host", "$best_http_host"}

func parseAuthority(text string, secure bool) (model.Call, error) {
	call, err := address.Authority(text, secure)
	if err != nil {
		return model.Call{}, err
	}
	if slices.Contains(ofHost, call.Host) {
		call.SameHost, call.Host = true, ""
		return call, nil
	}
	if strings.Contains(call.Host, "$") {
		return model.Call{}, errors.New("the only variable in the host must be $host: clients can set others")
	}
	return call, nil
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE"}

func parseMethod(text string) (string, error) {
	if text != "" && !slices.Contains(methods, text) {
		return "", fmt.Errorf("must be one of %s", strings.Join(methods, ", "))
	}
	return text, nil
}

// parseSignIn validates the text. The template is made when the parameter is known.
func parseSignIn(text string) (string, error) {
	_, err := feature.TemplateOf(checkURL, false)(text)
	return text, err
}

var parsePlain = feature.Matching(`^[A-Za-z0-9._~/:,?&=-]*$`, 1000, "must consist of letters, digits and -._~/:,?&=")

// parseRedirect reads a URL or a part of one, with variables.
var parseRedirect = feature.TemplateOf(feature.Matching(`^[A-Za-z0-9._~/:,?&=$-]*$`, 1000, "must consist of letters, digits and -._~/:,?&=, and variables such as $host"), false)

func parseParam(text string) (string, error) { return parsePlain(cmp.Or(text, "rd")) }

// backendHeaders are headers that nginx.conf sets in requests to backends.
func backendHeaders() []string { return append(names.RequestHeaders(), "proxy") }

func checkName(name string) error {
	if !header.IsName(name) {
		return errors.New("a header name can have only letters, digits, - and _")
	}
	if header.Has(header.RequestFraming(), name) {
		return fmt.Errorf("must not have the header %s: it controls how requests are transferred", name)
	}
	return nil
}

// maxNames bounds the headers that are copied: each costs time on each request.
const maxNames = 64

func parseNames(text string) ([]string, error) {
	names, err := feature.List(text)
	if err != nil {
		return nil, err
	}
	if len(names) > maxNames {
		return nil, fmt.Errorf("must be at most %d headers", maxNames)
	}
	for _, name := range names {
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// serviceHeaders are headers that nginx.conf sets in requests to the service.
var serviceHeaders = []string{
	"proxy", "x-forwarded-for", "x-headgate-checks", "x-original-method", "x-original-url", "x-real-ip", "x-request-id", "x-sent-from",
}

// headerValue reads an entry of the ConfigMap of auth-proxy-set-headers.
func headerValue(name, text string) (template.Template, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	text, err := header.Value(text)
	if err != nil {
		return nil, err
	}
	return template.Parse(text, false)
}

var parseKey = feature.TemplateOf(feature.Matching(`^[A-Za-z0-9_${}-]*$`, 1000, "must consist of letters, digits and -_${}"), false)

// A validity is a status, 0 for any, and for how many seconds responses with it are cached.
type validity [2]int

var usualValidity = []validity{{200, 300}, {202, 300}, {401, 300}}

const (
	maxValidities = 64
	maxSeconds    = 365 * 24 * 3600
)

var secondsOf = map[string]int{"": 1, "s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600, "M": 30 * 24 * 3600, "y": maxSeconds}

var timeForm = regexp.MustCompile(`^([0-9]{1,9})(ms|[smhdwMy]?)$`)

// parseValidity reads a list of "[STATUS …] TIME" and "any TIME", separated by
// commas.
func parseValidity(text string) ([]validity, error) {
	if text == "" {
		return usualValidity, nil
	}
	entries, err := feature.List(text)
	if err != nil {
		return nil, err
	}
	var list []validity
	for _, entry := range entries {
		words := strings.Fields(entry)
		seconds, err := parseSeconds(words[len(words)-1])
		if err != nil {
			return nil, err
		}
		statuses := words[:len(words)-1]
		if len(statuses) == 0 {
			statuses = []string{"200", "301", "302"}
		}
		for _, word := range statuses {
			status, err := strconv.Atoi(word)
			if word != "any" && (err != nil || status < 100 || status > 599) {
				return nil, errors.New("the statuses before the time must be from 100 to 599, or any")
			}
			list = append(list, validity{status, seconds})
		}
	}
	if len(list) > maxValidities {
		return nil, fmt.Errorf("must be at most %d statuses", maxValidities)
	}
	return list, nil
}

func parseSeconds(text string) (int, error) {
	found := timeForm.FindStringSubmatch(text)
	if found == nil {
		return 0, errors.New("must be a list of [STATUS ...] TIME, separated by commas, such as 200 202 10m, 401 1m (units ms, s, m, h, d, w, M, y)")
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		return 0, err
	}
	if found[2] == "ms" {
		return n / 1000, nil
	}
	return min(n*secondsOf[found[2]], maxSeconds), nil
}
