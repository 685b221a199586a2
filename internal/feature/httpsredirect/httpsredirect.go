// Package httpsredirect redirects clients from http to https, and makes browsers
// use https only (HSTS).
//
// The data plane looks up whether the name that the client asked for has a
// certificate, as for SNI: the names of a host may differ in that.
package httpsredirect

import (
	"embed"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/prediction"
)

const name = "https_redirect"

//go:embed *.lua
var lua embed.FS

var (
	sslRedirect = feature.Setting[bool]{
		Annotation: "ssl-redirect", Key: "ssl-redirect", Default: true, Parse: feature.Bool, Risk: feature.Low,
		Doc: "Redirects http to https if an Ingress of the host has a TLS section.",
	}
	forceSSLRedirect = feature.Setting[bool]{
		Annotation: "force-ssl-redirect", Key: "force-ssl-redirect", Parse: feature.Bool, Risk: feature.Medium,
		Doc: "Redirects http to https, even if no Ingress of the host has a TLS section.",
	}
	preserveTrailingSlash = feature.Setting[bool]{
		Annotation: "preserve-trailing-slash", Key: "preserve-trailing-slash", Parse: feature.Bool, Risk: feature.Medium,
		Doc: "Keeps the trailing slash of the URI in the redirect to https. By default, it is removed.",
	}
	usePortInRedirects = feature.Setting[bool]{
		Annotation: "use-port-in-redirects", Key: "use-port-in-redirects", Parse: feature.Bool, Risk: feature.Low,
		Doc: "Includes the port in redirects.",
	}
	redirectCode = feature.Setting[int]{
		Key: "http-redirect-code", Default: 308, Parse: feature.OneOf(301, 302, 307, 308), Scope: feature.ScopeProcess,
		Doc: "The status code of the redirect to https.",
	}
	exemptLocations = feature.Setting[[]string]{
		Key: "no-tls-redirect-locations", Default: []string{"/.well-known/acme-challenge"}, Parse: feature.List,
		Doc: "Path prefixes. Rules whose path begins with one of them are never redirected to https.",
	}
	hsts = feature.Setting[bool]{
		Key: "hsts", Default: true, Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Adds the header Strict-Transport-Security to every response over https.",
	}
	hstsMaxAge = feature.Setting[int]{
		Key: "hsts-max-age", Default: 31536000, Parse: feature.Int(0, 1<<40), Scope: feature.ScopeProcess,
		Doc: "The max-age in the header Strict-Transport-Security, in seconds.",
	}
	hstsSubdomains = feature.Setting[bool]{
		Key: "hsts-include-subdomains", Default: true, Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Adds includeSubDomains to the header Strict-Transport-Security.",
	}
	hstsPreload = feature.Setting[bool]{
		Key: "hsts-preload", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Adds preload to the header Strict-Transport-Security.",
	}
)

// Feature is the redirect to https, with HSTS.
func Feature() feature.Feature {
	return feature.Feature{
		Name: name,
		Doc:  "Redirects clients from http to https, and sends HSTS.",
		Settings: []feature.AnySetting{
			sslRedirect, forceSSLRedirect, preserveTrailingSlash, usePortInRedirects,
			redirectCode, exemptLocations, hsts, hstsMaxAge, hstsSubdomains, hstsPreload,
		},
		Route:   route,
		Process: process,
		Predict: prediction.ByPhase{prediction.RoutePhase: predict},
		Part:    part,
		Lua:     lua,
	}
}

// policy is what httpsredirect.lua reads of a route.
type policy struct {
	// Always redirects names without a certificate too.
	Always    bool `json:"always,omitempty"`
	KeepSlash bool `json:"keep_slash,omitempty"`
	Port      bool `json:"port,omitempty"`
}

func route(v feature.Values, out *feature.RouteOut) {
	p := policy{
		Always:    forceSSLRedirect.Get(v),
		KeepSlash: preserveTrailingSlash.Get(v),
		Port:      usePortInRedirects.Get(v),
	}
	// As in ingress-nginx, a route without an Ingress answers 404 without a redirect.
	if out.Route.Origin == (model.Origin{}) {
		return
	}
	// As in ingress-nginx, the paths of requests don't matter.
	exempt := slices.ContainsFunc(exemptLocations.Get(v), func(start string) bool { return strings.HasPrefix(out.Route.Written(), start) })
	if (p.Always || sslRedirect.Get(v)) && !exempt {
		feature.Add(out.Route, name, p)
	}
}

// everywhere is what httpsredirect.lua reads of the globals.
type everywhere struct {
	Code int `json:"code"`
}

// process lets NGINX write the header of HSTS: Lua in every response would cost a
// microsecond each, for keys that hardly ever change.
func process(v feature.Values, out *feature.ProcessOut) {
	out.Policy = everywhere{Code: redirectCode.Get(v)}
	out.Process.RedirectCode = redirectCode.Get(v)
	out.Process.HSTS = model.HSTS{
		On: hsts.Get(v), MaxAge: hstsMaxAge.Get(v), Subdomains: hstsSubdomains.Get(v), Preload: hstsPreload.Get(v),
	}
}
