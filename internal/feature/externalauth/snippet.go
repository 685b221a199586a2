package externalauth

import (
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/syntax/snippet"
	"github.com/headgate/headgate/internal/syntax/snippet/program"
)

// authSnippet declares the annotation; the key for all routes is the administrator's.
func authSnippet() feature.Setting[*snippet.Source] {
	return feature.Setting[*snippet.Source]{
		Annotation: "auth-snippet", Risk: feature.Critical,
		Parse: func(text string) (*snippet.Source, error) { return &snippet.Source{Text: text}, nil },
		Doc:   "Directives of NGINX for the call of the auth service: headers of the call, and conditions under which requests pass or are denied without it. Only what [snippets.md](snippets.md#auth-snippet-and-global-auth-snippet) lists.",
	}
}

// program is what the snippet of the call says, nil if there is none. It reports false if the
// snippet may control access and is not followed.
func (s settings) program(v feature.Values, out *feature.RouteOut) (*program.Program, bool) {
	source := s.snippet.Get(v)
	if source == nil {
		return nil, true
	}
	if s.snippet.Snippet && !feature.AllowsSnippets(v) {
		out.Warn(s.snippet, finding.NotAllowed, "snippets of Ingresses count only while the key allow-snippet-annotations is true", "it has no effect")
		return nil, true
	}
	read := source.Parse(snippet.InAuth, snippet.Options{Administrator: feature.Defined(v).Variables})
	snippet.ReportTo[feature.AnySetting](read, s.snippet, &out.Report)
	for _, r := range read.Refusals {
		if r.Guards {
			return nil, false
		}
	}
	if len(read.Steps)+len(read.Effects) == 0 {
		return nil, true
	}
	return &read.Program, true
}
