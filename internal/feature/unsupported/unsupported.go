// Package unsupported denies routes that ask for access control that Headgate does
// not support yet: they answer 503. If the settings were ignored, routes that
// their owner believes to be protected would be open.
//
// A setting is removed from this list when a feature supports it.
package unsupported

import (
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
)

var settings = []feature.AnySetting{
	firewall("enable-modsecurity", "enable-modsecurity", "Has ModSecurity inspect requests."),
	firewall("enable-owasp-core-rules", "", "Has ModSecurity apply the rules of OWASP."),
	snippetKey("http-snippet", "NGINX configuration for all servers."),
	snippetKey("server-snippet", "NGINX configuration for all hosts."),
	snippetKey("location-snippet", "NGINX configuration for all paths."),
	configurationSnippet, serverSnippet, authSnippet, modsecuritySnippet,
}

// Snippets of tenants count only where the administrator allows them, as in
// ingress-nginx.
var (
	configurationSnippet = snippetAnnotation("configuration-snippet", "NGINX configuration for the paths of the Ingress.")
	serverSnippet        = snippetAnnotation("server-snippet", "NGINX configuration for the hosts of the Ingress.")
	authSnippet          = snippetAnnotation("auth-snippet", "NGINX configuration for the requests to the auth service.")
	modsecuritySnippet   = snippetAnnotation("modsecurity-snippet", "Rules for ModSecurity.")
)

// firewall denies unless it is off. As in ingress-nginx, the annotation turns off what
// the key turns on.
func firewall(annotation, key, doc string) feature.Setting[bool] {
	return feature.Setting[bool]{
		Annotation: annotation, Key: key, OnInvalid: feature.Deny, Risk: feature.Low,
		Parse: feature.Optional(func(text string) (bool, error) {
			if on, err := strconv.ParseBool(text); err == nil && !on {
				return false, nil
			}
			_, err := refuse(text)
			return false, err
		}),
		Doc: doc + " Not supported yet: the paths that it applies to answer 503, unless it is false.",
	}
}

func snippetAnnotation(annotation, doc string) feature.Setting[string] {
	return feature.Setting[string]{
		Annotation: annotation, Parse: anyText, Risk: feature.Critical,
		Doc: doc + " Not supported yet: while the key allow-snippet-annotations is true, the paths of the Ingress answer 503, unless the text changes only responses, buffers and timeouts.",
	}
}

func snippetKey(key, doc string) feature.Setting[string] {
	return feature.Setting[string]{
		Key: key, OnInvalid: feature.Deny,
		Parse: func(text string) (string, error) {
			if mayGuard(text, key == "http-snippet") {
				return "", feature.NotImplemented(guards)
			}
			return text, nil
		},
		Doc: doc + " Not supported yet: all paths answer 503, unless the text changes only responses, buffers and timeouts.",
	}
}

func anyText(text string) (string, error) { return text, nil }

const (
	refusal = "this setting, which controls access, is not supported yet"
	idle    = "snippets are not supported yet"
	guards  = idle + ", and this one may control access"
)

func refuse(string) (string, error) { return "", feature.NotImplemented(refusal) }

// Feature denies routes with access control that is not supported.
func Feature() feature.Feature {
	var snippets, keys []snippet
	for _, s := range settings {
		switch d := s.Spec(); {
		case strings.HasSuffix(d.Annotation, "-snippet"):
			snippets = append(snippets, snippet{s, d})
		case strings.HasSuffix(d.Key, "-snippet"):
			keys = append(keys, snippet{s, d})
		}
	}
	return feature.Feature{
		Name:     "unsupported",
		Doc:      "Denies routes whose access control is not supported yet.",
		Settings: settings,
		Route: func(v feature.Values, out *feature.RouteOut) {
			for _, s := range snippets {
				s.route(v, out)
			}
		},
		Process: func(v feature.Values, out *feature.ProcessOut) {
			for _, s := range keys {
				if text, _ := s.spec.Get(v).(string); text != "" {
					out.Warn(s.setting, finding.NotImplemented, idle, "it has no effect")
				}
			}
		},
	}
}

// A snippet is a setting whose text would be part of nginx.conf.
type snippet struct {
	setting feature.AnySetting
	spec    feature.SettingSpec
}

// route denies a route if the snippet may control access, and reports it otherwise.
func (s snippet) route(v feature.Values, out *feature.RouteOut) {
	text, ok := s.spec.Get(v).(string)
	switch {
	case !ok || text == "":
	case !feature.AllowsSnippets(v):
		out.Warn(s.setting, finding.NotImplemented, idle+", and the key allow-snippet-annotations does not allow them", "it has no effect")
	case s.spec.Annotation == modsecuritySnippet.Annotation || mayGuard(text, false):
		out.Deny(s.setting, finding.NotImplemented, guards)
	default:
		out.Warn(s.setting, finding.NotImplemented, idle, "it has no effect")
	}
}
