// Package unsupported denies routes that ask for access control that Headgate does
// not support yet: they answer 503. If the settings were ignored, routes that
// their owner believes to be protected would be open.
//
// A setting is removed from this list when a feature supports it.
package unsupported

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/nginxsyntax"
)

var settings = []feature.AnySetting{
	snippetKey("global-auth-snippet", "NGINX configuration for the requests to the auth service of all paths."),
	authSnippet,
}

// Snippets of tenants count only where the administrator allows them, as in
// ingress-nginx.
var authSnippet = snippetAnnotation("auth-snippet", "NGINX configuration for the requests to the auth service.")

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
			if nginxsyntax.MayGuard(text, false) {
				return "", feature.NotImplemented(guards)
			}
			return text, nil
		},
		Doc: doc + " Not supported yet: all paths answer 503, unless the text changes only responses, buffers and timeouts.",
	}
}

func anyText(text string) (string, error) { return text, nil }

const (
	idle   = "snippets are not supported yet"
	guards = idle + ", and this one may control access"
)

// Feature denies routes with access control that is not supported.
func Feature() feature.Feature {
	var snippets, keys []text
	for _, s := range settings {
		if d := s.Spec(); d.Annotation != "" {
			snippets = append(snippets, text{s, d})
		} else {
			keys = append(keys, text{s, d})
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

// A text is a setting whose text would be part of nginx.conf.
type text struct {
	setting feature.AnySetting
	spec    feature.SettingSpec
}

// route denies a route if the snippet may control access, and reports it otherwise.
func (s text) route(v feature.Values, out *feature.RouteOut) {
	text, ok := s.spec.Get(v).(string)
	switch {
	case !ok || text == "":
	case !feature.AllowsSnippets(v):
		out.Warn(s.setting, finding.NotImplemented, idle+", and the key allow-snippet-annotations does not allow them", "it has no effect")
	case nginxsyntax.MayGuard(text, false):
		out.Deny(s.setting, finding.NotImplemented, guards)
	default:
		out.Warn(s.setting, finding.NotImplemented, idle, "it has no effect")
	}
}
