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
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/header"
	"github.com/headgate/headgate/internal/syntax/snippet/program"
	"github.com/headgate/headgate/internal/syntax/template"
)

// policy is what externalauth.lua reads of a route.
type policy struct {
	// ID is the same where the same service is asked for the same path. A check
	// carries it, so that one that leads to itself ends.
	ID string `json:"id"`
	// Version is the hash of all the rest: what is kept was said for it alone.
	Version string            `json:"version"`
	Call    callee            `json:"call"`
	URI     template.Template `json:"uri"`
	// PathVaries is set where the path of the URI depends on the request.
	PathVaries bool              `json:"path_varies,omitempty"`
	Method     string            `json:"method,omitempty"`
	Redirect   template.Template `json:"redirect,omitempty"`
	// Headers are names with templates, which may be empty.
	Headers [][2]any          `json:"headers,omitempty"`
	Respond []string          `json:"respond,omitempty"`
	Always  bool              `json:"always_cookies,omitempty"`
	SignIn  template.Template `json:"sign_in,omitempty"`
	Cache   *cache            `json:"cache,omitempty"`
	// Answers is the check whose location passes the service's response to denied clients, empty for none.
	Answers string `json:"answers,omitempty"`
	// Program is that of the call.
	Program *program.Program `json:"program,omitempty"`
	check   model.Check

	// For explain: the URL, the setting that has it, and that of the sign-in page.
	url, by, signInBy string
}

// callee is the target of the call: an endpoint of the backend, or this NGINX.
type callee struct {
	Secure  bool   `json:"secure,omitempty"`
	Own     bool   `json:"own,omitempty"`
	Backend string `json:"backend,omitempty"`
	// Host is sent as Host; empty for the host of the request. Name is sent by SNI, and
	// is in the certificate; empty if it is the Host.
	Host string `json:"host,omitempty"`
	Name string `json:"name,omitempty"`
}

type cache struct {
	Key   template.Template `json:"key"`
	Valid []validity        `json:"valid,omitempty"`
}

// policy makes the policy of a route. It reports false if the settings can't be
// followed, and then the route is denied.
func (s settings) policy(v feature.Values, out *feature.RouteOut) (policy, bool) {
	url := s.url.Get(v)
	if url.bare {
		out.Warn(s.url, finding.InvalidValue, fmt.Sprintf("%q has no path: must contain the path of the auth service, even if it is /", finding.Shorten(url.text)),
			"the auth service gets requests for /: if this is a public page, every request is allowed")
	}
	p := policy{
		ID: hash(url.text), URI: url.uri, PathVaries: url.pathVaries, Method: s.method.Get(v), Redirect: s.redirect.Get(v),
		Respond: s.respond.Get(v), Always: s.alwaysCookie.Get(v), SignIn: s.signInTemplate(v),
		url: url.text, by: cmp.Or(s.url.Annotation, s.url.Key), signInBy: cmp.Or(s.signIn.Annotation, s.signIn.Key),
	}
	var ok bool
	if p.Call, ok = s.callee(out, url.call); !ok {
		return policy{}, false
	}
	if p.check, ok = s.check(v, out, p.Call); !ok {
		return policy{}, false
	}
	switch {
	case !s.passResponse.Get(v):
	case p.Method == "HEAD":
		out.Warn(s.passResponse, finding.NoEffect, "a response to HEAD has no body: the method of the calls must be another one", "the setting has no effect")
	default:
		p.Answers = p.check.String()
	}
	if key := s.cacheKey.Get(v); len(key) > 0 {
		p.Cache = &cache{key, s.cacheFor.Get(v)}
	}
	if p.Program, ok = s.program(v, out); !ok {
		return policy{}, false
	}
	if s.url.Annotation != "" {
		p.Headers, ok = proxyHeadersOf(v, out)
	}
	p.Respond = slices.DeleteFunc(slices.Clone(p.Respond), func(name string) bool {
		// NGINX would look for the client's address in some of them again, on the jump to the profile.
		own := header.Has(backendHeaders(), name)
		if own {
			out.Warn(s.respond, finding.InvalidValue, fmt.Sprintf("must not have the header %s: Headgate sets it", name), "this header is not copied")
		}
		return own
	})
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("externalauth: a policy that is not plain data: %v", err))
	}
	if p.check == model.CheckVerified {
		// Nothing that another service said may be kept.
		text = append(append(text, "verified"...), authURLCA.Get(v).bundle...)
	}
	p.Version = hash(string(text))
	return p, ok
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:10])
}

// callee returns the target of the call. A call to the host of the request goes to
// this NGINX if it has a route for the call.
func (s settings) callee(out *feature.RouteOut, call model.Call) (callee, bool) {
	to := callee{Secure: call.Secure, Host: call.Host}
	if !call.SameHost {
		to.Backend = call.Backend()
		if name, dotted := strings.CutSuffix(call.Host, "."); dotted {
			to.Name = name
		}
		return to, true
	}
	host := out.Host
	if host.Answers != nil && call.OwnPort() && host.Answers(call.Path) {
		to.Own = true
		return to, true
	}
	if host.ManyNames || s.url.Annotation == "" {
		out.Deny(s.url, finding.InvalidValue, fmt.Sprintf(
			"$host: the host %s must have a route for %s without an auth check", host.Name, cmp.Or(call.Path, "it")))
		return callee{}, false
	}
	call.Host = host.Name
	to.Host, to.Backend = call.Host, call.Backend()
	return to, true
}

// signInTemplate is the URL where clients sign in, with the URL of the request as a
// parameter.
func (s settings) signInTemplate(v feature.Values) template.Template {
	text, param := s.signIn.Get(v), s.signInParam.Get(v)
	if text == "" {
		return nil
	}
	url, _ := template.Parse(strings.ReplaceAll(text, " ", "%20"), false) // parseSignIn took it
	path, query, hasQuery := strings.Cut(text, "?")
	for argument := range strings.SplitSeq(query, "&") {
		if key, _, _ := strings.Cut(argument, "="); hasQuery && key == param {
			return url
		}
	}
	separator := "?"
	if hasQuery {
		separator = "&"
	}
	if hasQuery && query == "" || path == "" {
		separator = ""
	}
	return append(url, template.Piece{Literal: separator + param + "="}, template.Piece{Variable: "pass_access_scheme"},
		template.Piece{Literal: "://"}, template.Piece{Variable: "best_http_host"}, template.Piece{Variable: "escaped_request_uri"})
}

// proxyHeadersOf returns the additional headers for the service, sorted.
func proxyHeadersOf(v feature.Values, out *feature.RouteOut) (list [][2]any, ok bool) {
	if proxyHeaders.Get(v).Name == "" {
		return nil, true
	}
	// The ConfigMap is missing: that was reported, and denies the route.
	data, ok := feature.ConfigMapOf(v, proxyHeaders)
	if !ok {
		return nil, false
	}
	if err := header.Check(data); err != nil {
		out.Reject(proxyHeaders, finding.TooMany, fmt.Sprintf("ConfigMap %s: %v", proxyHeaders.Get(v), err))
		return nil, false
	}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if header.Has(serviceHeaders, name) {
			out.Warn(proxyHeaders, finding.InvalidValue, fmt.Sprintf("must not have the header %s: Headgate sets it", name), "this header is not sent")
			continue
		}
		value, err := headerValue(name, data[name])
		if err != nil {
			out.Reject(proxyHeaders, finding.InvalidValue, fmt.Sprintf("ConfigMap %s, %q: %v", proxyHeaders.Get(v), finding.Shorten(name), err))
			return nil, false
		}
		list = append(list, [2]any{name, append(template.Template{}, value...)})
	}
	return list, true
}

// predict does not call the service.
func predict(q prediction.Request) prediction.Answer {
	p, _ := q.Policy.(policy)
	denies := "401, 403"
	if p.SignIn != nil {
		denies = "302 to " + p.signInBy + ", 403"
	}
	return prediction.Answer{Why: fmt.Sprintf("the auth service %s is called first, and may deny the request: %s, or 500 if it fails (%s)",
		finding.Shorten(p.url), denies, p.by)}
}
