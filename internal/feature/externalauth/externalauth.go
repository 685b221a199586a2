// Package externalauth authenticates requests by calling an auth service.
//
// NGINX makes the call (auth_request, in a variant with a check), and denies the
// requests that the service does not allow. The policy has the URL of the service,
// the headers of the call, and what happens with its response. If it can't be set
// up, the route is denied.
package externalauth

import (
	"embed"

	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/syntax/template"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/snippet"
)

const name = "external_auth"

//go:embed *.lua
var lua embed.FS

// settings are those of one auth check: of an Ingress (annotations) or of all routes
// (keys).
type settings struct {
	url          feature.Setting[target]
	method       feature.Setting[string]
	signIn       feature.Setting[string]
	signInParam  feature.Setting[string]
	respond      feature.Setting[[]string]
	redirect     feature.Setting[template.Template]
	cacheKey     feature.Setting[template.Template]
	cacheFor     feature.Setting[[]validity]
	alwaysCookie feature.Setting[bool]
	passResponse feature.Setting[bool]
	snippet      feature.Setting[*snippet.Source]
}

var (
	own    = newSettings(authURL)
	global = newSettings(globalAuthURL)

	authURL = feature.Setting[target]{
		Annotation: "auth-url", Parse: parseURL, OnInvalid: feature.Deny, Risk: feature.High,
		Doc: "The URL of the auth service, which authenticates each request. The status 2xx allows the request, 401 and 403 are returned to the client, and with any other status the client gets 500. With https, the certificate of a service outside the cluster is verified (key auth-url-ca).",
	}
	globalAuthURL = func() feature.Setting[target] {
		s := everywhere(authURL, takesGlobal)
		// Charts write empty keys.
		s.Parse = feature.Optional(parseURL)
		return s
	}()
)

func asksOwn(v feature.Values) bool { return authURL.Get(v).set() }

// takesGlobal reports whether the keys apply to the routes of an Ingress. They don't
// apply to names without an Ingress.
func takesGlobal(v feature.Values) bool {
	return v.Origin() != model.Origin{} && !asksOwn(v) && enableGlobal.Get(v)
}

func asksGlobal(v feature.Values) bool { return takesGlobal(v) && globalAuthURL.Get(v).set() }

var (
	enableGlobal = feature.Setting[bool]{
		Annotation: "enable-global-auth", Default: true, Parse: feature.Bool, Risk: feature.Low,
		Doc: "Uses the auth service of the key global-auth-url, unless the Ingress has an auth-url.",
	}
	proxyHeaders = feature.Setting[feature.ObjectName]{
		Annotation: "auth-proxy-set-headers", Needs: feature.Needs(authURL, asksOwn), Parse: feature.Optional(feature.Object), OnInvalid: feature.DenyMissing, When: asksOwn, Refers: feature.ConfigMap, Risk: feature.Medium,
		Doc: "The ConfigMap with headers to add to requests to the auth service. If the ConfigMap does not exist or has an invalid header, the paths answer 503.",
	}
	keepalive          = ignored("auth-keepalive", 0, "Number of idle connections to the auth service.")
	keepaliveRequests  = ignored("auth-keepalive-requests", 1000, "Number of requests over one connection to the auth service.")
	keepaliveTimeout   = ignored("auth-keepalive-timeout", 60, "Number of seconds that a connection to the auth service may be idle.")
	keepaliveShareVars = feature.Setting[bool]{
		Annotation: "auth-keepalive-share-vars", Parse: feature.Optional(feature.Bool), Risk: feature.Low,
		Doc: "Has no effect: " + separateVars + ".",
	}
)

// Why annotations have no effect.
const (
	sharedConnections = "connections to the auth service use the keys upstream-keepalive-*"
	separateVars      = "variables are never shared with the request to the auth service"
)

// ignored declares a setting that is validated and has no effect.
func ignored(annotation string, standard int, doc string) feature.Setting[int] {
	return feature.Setting[int]{
		Annotation: annotation, Default: standard, Parse: feature.Int(-1<<31, 1<<31-1), Risk: feature.Low,
		Doc: doc + " Has no effect: " + sharedConnections + ".",
	}
}

// reportIgnored reports annotations that have no effect.
func reportIgnored(v feature.Values, out *feature.RouteOut) {
	const effect = "it has no effect"
	for _, s := range []feature.Setting[int]{keepalive, keepaliveRequests, keepaliveTimeout} {
		if s.Get(v) != s.Default {
			out.Warn(s, finding.NoEffect, sharedConnections, effect)
		}
	}
	if keepaliveShareVars.Get(v) {
		out.Warn(keepaliveShareVars, finding.NoEffect, separateVars, effect)
	}
}

// newSettings declares annotations, or keys if the setting of the URL is one.
func newSettings(url feature.Setting[target]) settings {
	s := settings{
		url: url,
		method: declare(url, feature.Setting[string]{
			Annotation: "auth-method", Parse: parseMethod, OnInvalid: feature.Deny, Risk: feature.Low,
			Doc: "The method of requests to the auth service; GET by default. If the method is set, the auth service also gets X-Original-URI and X-Scheme.",
		}),
		signIn: declare(url, feature.Setting[string]{
			Annotation: "auth-signin", Parse: parseSignIn, Risk: feature.High,
			Doc: "The URL that clients are redirected to (302) instead of a 401. The requested URL is added as a query parameter, unless the URL has a parameter of that name.",
		}),
		signInParam: declare(url, feature.Setting[string]{
			Annotation: "auth-signin-redirect-param", Default: "rd", Parse: parseParam, Risk: feature.Medium,
			Doc: "The name of the query parameter of the sign-in URL that contains the requested URL.",
		}),
		respond: declare(url, feature.Setting[[]string]{
			Annotation: "auth-response-headers", Parse: parseNames, OnInvalid: feature.Deny, Risk: feature.Medium,
			Doc: "Headers of the auth service's response that are sent to the backend. They replace the client's headers of the same names.",
		}),
		redirect: declare(url, feature.Setting[template.Template]{
			Annotation: "auth-request-redirect", Parse: parseRedirect, OnInvalid: feature.Deny, Risk: feature.Medium,
			Doc: "The value of the header X-Auth-Request-Redirect that the auth service gets, which can contain variables. The default is the URI of the request.",
		}),
		cacheKey: declare(url, feature.Setting[template.Template]{
			Annotation: "auth-cache-key", Parse: parseKey, Risk: feature.Medium,
			Doc: "A text with variables. Requests of one path with the same key share a cached response of the auth service. Without a key, nothing is cached.",
		}),
		cacheFor: declare(url, feature.Setting[[]validity]{
			Annotation: "auth-cache-duration", Default: usualValidity, Parse: parseValidity, OnInvalid: feature.Deny, Risk: feature.Medium,
			Doc: "Time for which responses of the auth service are cached, for each status. The Cache-Control and Expires headers of the response take precedence.",
		}),
		alwaysCookie: declare(url, feature.Setting[bool]{
			Annotation: "auth-always-set-cookie", Parse: feature.Optional(feature.Bool), OnInvalid: feature.Deny, Risk: feature.Low,
			Doc: "Adds the cookies of the auth service to every response. By default, they are added to successful responses and redirects only.",
		}),
		passResponse: declare(url, feature.Setting[bool]{
			Annotation: "auth-pass-response", Parse: feature.Optional(feature.Bool), Risk: feature.Low,
			Doc: "Answers a request that the auth service denies with the response of the service, its body, headers and cookies, instead of Headgate's page or that of custom-http-errors. The service is called once more for it, also if the verdict was cached; if it allows the request then, the client gets the status alone. A sign-in URL takes precedence for 401. What the snippet of the call answers has no such response.",
		}),
	}
	s.snippet = declare(url, authSnippet())
	s.snippet.Snippet = s.snippet.Annotation != ""
	if url.Key != "" {
		// Without the key, only the responses' own headers decide how long they are cached.
		s.cacheFor.Default = nil
	}
	return s
}

// declare makes a key of an annotation if the setting of the URL is one.
func declare[T any](url feature.Setting[target], s feature.Setting[T]) feature.Setting[T] {
	if url.Key != "" {
		return everywhere(s, asksGlobal)
	}
	s.When, s.Needs = asksOwn, feature.Needs(url, asksOwn)
	return s
}

// everywhere returns the key that is for all routes what an annotation is for one Ingress.
func everywhere[T any](s feature.Setting[T], when func(feature.Values) bool) feature.Setting[T] {
	s.Key, s.Annotation, s.When = "global-"+s.Annotation, "", when
	s.Doc += " Applies to routes whose Ingress has neither an auth-url nor enable-global-auth: \"false\"."
	return s
}

func (s settings) list() []feature.AnySetting {
	return []feature.AnySetting{s.url, s.method, s.signIn, s.signInParam, s.respond, s.redirect, s.cacheKey, s.cacheFor, s.alwaysCookie, s.passResponse, s.snippet}
}

// Feature is external authentication.
func Feature() feature.Feature {
	return feature.Feature{
		Name: name,
		Doc:  "Authenticates requests with an external auth service.",
		Settings: append(append(own.list(), global.list()...),
			enableGlobal, authURLCA, logCalls, proxyHeaders, keepalive, keepaliveRequests, keepaliveTimeout, keepaliveShareVars),
		Route:     route,
		Process:   process,
		Calls:     calls,
		Predict:   prediction.ByPhase{prediction.AuthPhase: predict},
		Lua:       lua,
		Resources: resources(),
	}
}

// asked returns the auth check of the routes of an Ingress: its own or that of the
// keys. It reports false if there is none.
func asked(v feature.Values) (settings, bool) {
	if asksOwn(v) {
		return own, true
	}
	return global, enableGlobal.Get(v) && globalAuthURL.Get(v).set()
}

// calls returns the call to the service, so that build finds its endpoints.
func calls(v feature.Values) []model.Call {
	if s, ok := asked(v); ok {
		call := s.url.Get(v).call
		call.Name = model.CheckCall
		return []model.Call{call}
	}
	return nil
}

func route(v feature.Values, out *feature.RouteOut) {
	// A route without an Ingress answers 404, or what the administrator has set.
	if out.Route.Origin == (model.Origin{}) || feature.Exempt(v, out.Route.Written()) {
		return
	}
	reportIgnored(v, out)
	s, ok := asked(v)
	if !ok {
		return
	}
	p, ok := s.policy(v, out)
	if !ok {
		return
	}
	out.Route.Variant = model.Variant{HeaderFilter: true, Check: p.check}
	feature.Add(out.Route, name, p)
}
