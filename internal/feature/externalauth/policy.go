package externalauth

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// policy is what externalauth.lua reads of a route.
type policy struct {
	// ID is the same where the same service is asked for the same path. A check
	// carries it, so that one that leads to itself ends.
	ID string `json:"id"`
	// Version is the hash of all the rest: what is kept was said for it alone.
	Version string           `json:"version"`
	Call    callee           `json:"call"`
	URI     feature.Template `json:"uri"`
	// PathVaries is set where clients have a say in the path of the URI.
	PathVaries bool             `json:"path_varies,omitempty"`
	Method     string           `json:"method,omitempty"`
	Redirect   string           `json:"redirect,omitempty"`
	Headers    []header         `json:"headers,omitempty"`
	Respond    []string         `json:"respond,omitempty"`
	Always     bool             `json:"always_cookies,omitempty"`
	SignIn     feature.Template `json:"sign_in,omitempty"`
	Cache      *cache           `json:"cache,omitempty"`
}

// callee is whom to call: an endpoint of the backend, or this very NGINX.
type callee struct {
	Secure  bool   `json:"secure,omitempty"`
	Own     bool   `json:"own,omitempty"`
	Backend string `json:"backend,omitempty"`
	// Host is told as Host and by SNI; empty for the host that was asked for.
	Host string `json:"host,omitempty"`
}

type cache struct {
	Key   feature.Template `json:"key"`
	Valid []validity       `json:"valid,omitempty"`
}

type header struct {
	name  string
	value feature.Template
}

// MarshalJSON writes a list of name and value, which may be empty.
func (h header) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{h.name, append(feature.Template{}, h.value...)})
}

// policy is what the settings mean on a route. It is false if they can't be
// followed, which denies the route.
func (s settings) policy(r *feature.Reader) (policy, bool) {
	url := s.url.Get(r)
	p := policy{
		ID: hash(url.text), URI: url.uri, PathVaries: url.pathVaries(), Method: s.method.Get(r), Redirect: s.redirect.Get(r),
		Respond: s.respond.Get(r), Always: s.alwaysCookie.Get(r), SignIn: s.signInTemplate(r),
	}
	var ok bool
	if p.Call, ok = s.callee(r, url.call); !ok {
		return policy{}, false
	}
	if key := s.cacheKey.Get(r); len(key) > 0 {
		p.Cache = &cache{key, s.cacheFor.Get(r)}
	} else {
		s.cacheFor.Get(r) // a bad value denies even where nothing is kept
	}
	if s.url.Annotation != "" {
		p.Headers, ok = proxyHeadersOf(r)
		readIgnored(r)
	}
	for _, name := range p.Respond {
		if slices.Contains(toldToBackends, strings.ToLower(name)) {
			r.Tell(s.respond, finding.InvalidValue, fmt.Sprintf("backends are told %s by Headgate itself", name), "this one of the headers is not copied")
		}
	}
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("externalauth: a policy that is no plain data: %v", err))
	}
	p.Version = hash(string(text))
	return p, ok
}

// readIgnored has bad values told of what has no effect.
func readIgnored(r *feature.Reader) {
	for _, s := range []feature.Setting[int]{keepalive, keepaliveRequests, keepaliveTimeout} {
		s.Get(r)
	}
	keepaliveShareVars.Get(r)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:10])
}

// callee says where the call goes. One to the host itself goes to this very
// NGINX if that has a route for it.
func (s settings) callee(r *feature.Reader, call model.Call) (callee, bool) {
	to := callee{Secure: call.Secure, Host: call.Host}
	if !call.SameHost {
		to.Backend = call.Backend()
		return to, true
	}
	host := r.Host()
	if host.Answers != nil && call.OwnPort() && host.Answers(call.Path) {
		to.Own = true
		return to, true
	}
	if host.ManyNames || s.url.Annotation == "" {
		r.Deny(s.url, finding.InvalidValue, fmt.Sprintf(
			"$host: the host %s has no route for %s that is open to who has not signed in yet", host.Name, cmp.Or(call.Path, "it")))
		return callee{}, false
	}
	call.Host = host.Name
	to.Host, to.Backend = call.Host, call.Backend()
	return to, true
}

// signInTemplate is where clients sign in, with the parameter that says where
// they came from.
func (s settings) signInTemplate(r *feature.Reader) feature.Template {
	text, param := s.signIn.Get(r), s.signInParam.Get(r)
	if text == "" {
		return nil
	}
	template, err := feature.ParseTemplate(strings.ReplaceAll(text, " ", "%20"), false)
	if err != nil {
		return nil
	}
	path, query, hasQuery := strings.Cut(text, "?")
	for argument := range strings.SplitSeq(query, "&") {
		if key, _, _ := strings.Cut(argument, "="); hasQuery && key == param {
			return template
		}
	}
	separator := "?"
	if hasQuery {
		separator = "&"
	}
	if hasQuery && query == "" || path == "" {
		separator = ""
	}
	return append(template, feature.Piece{Literal: separator + param + "="}, feature.Piece{Variable: "pass_access_scheme"},
		feature.Piece{Literal: "://"}, feature.Piece{Variable: "best_http_host"}, feature.Piece{Variable: "escaped_request_uri"})
}

// What a ConfigMap of further headers may have: each request to the service
// carries them, and each worker has them for each host.
const (
	mostHeaders     = 64
	mostHeaderBytes = 16 << 10
)

// proxyHeadersOf are the further headers for the service, sorted.
func proxyHeadersOf(r *feature.Reader) (list []header, ok bool) {
	if proxyHeaders.Get(r).Name == "" {
		return nil, true
	}
	// A name that is none is passed over, as with the predecessor; a ConfigMap
	// that is named must be followed.
	strict := proxyHeaders
	strict.OnInvalid = feature.Deny
	data, ok := feature.ConfigMapOf(r, strict)
	if !ok {
		return nil, false
	}
	bytes := 0
	for name, value := range data {
		bytes += len(name) + len(value)
	}
	if len(data) > mostHeaders || bytes > mostHeaderBytes {
		r.Refuse(strict, finding.TooMany, fmt.Sprintf("ConfigMap %s has %d headers of %d bytes together; allowed are %d of %d bytes", proxyHeaders.Get(r), len(data), bytes, mostHeaders, mostHeaderBytes))
		return nil, false
	}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if slices.Contains(toldToService, strings.ToLower(name)) {
			r.Tell(proxyHeaders, finding.InvalidValue, fmt.Sprintf("the service is told %s by Headgate itself", name), "this one of the headers is not sent")
			continue
		}
		value, err := headerValue(name, data[name])
		if err != nil {
			r.Refuse(strict, finding.InvalidValue, fmt.Sprintf("ConfigMap %s, %q: %v", proxyHeaders.Get(r), feature.Shorten(name), err))
			return nil, false
		}
		list = append(list, header{name, value})
	}
	return list, true
}
