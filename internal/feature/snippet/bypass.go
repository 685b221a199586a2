package snippet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/syntax/snippet"
)

// Bypass reports snippets that answer clients before an auth check or a limit of the path, as
// in NGINX. It stands behind all of these.
func Bypass() feature.Feature {
	return feature.Feature{
		Name: "snippet_bypass",
		Doc:  "Reports snippets that answer before an auth check or a limit.",
		Route: func(v feature.Values, out *feature.RouteOut) {
			if s := locationSnippet(v); s != nil && len(out.Guards) > 0 {
				reportBypass(s, configurationSnippet, out.Guards, &out.Report)
			}
		},
		Host: func(v feature.Values, out *feature.HostOut) {
			// It answers on the paths of all Ingresses of the host.
			if s := hostSnippet(v); s != nil && out.Guards != nil {
				reportBypass(s, serverSnippet, out.Guards(), &out.Report)
			}
		},
	}
}

func reportBypass(s *snippet.Snippet, setting feature.AnySetting, guards []string, out *feature.Report) {
	// Headers and pages of errors never refuse a client.
	guards = slices.DeleteFunc(slices.Clone(guards), func(name string) bool { return name == effectsName })
	var answers []string
	for _, status := range returned(s.Program) {
		if status < 400 {
			answers = append(answers, fmt.Sprint(status))
		}
	}
	if len(answers) > 0 && len(guards) > 0 {
		out.Warn(setting, finding.Unexpected, "it answers "+strings.Join(answers, ", ")+" before "+strings.Join(guards, " and "),
			"clients get these answers without being authenticated or limited, as in NGINX")
	}
}
