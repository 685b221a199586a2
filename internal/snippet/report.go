package snippet

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
)

// Report reports what of a snippet is not followed, and denies for what may control access.
func (s *Snippet) Report(setting feature.AnySetting, out *feature.Report) {
	for _, r := range s.Refusals {
		message := at(r.Line, r.Directive) + r.Reason
		if r.Instead != "" {
			message += "; use " + r.Instead
		}
		if r.Guards {
			out.Deny(setting, finding.NotSupported, message)
		} else {
			out.Warn(setting, finding.NotSupported, message, cmp.Or(r.Effect, "the directive has no effect"))
		}
	}
	for _, w := range s.Warnings {
		out.Warn(setting, finding.NotSupported, at(w.Line, w.Directive)+w.Message, "it acts as in NGINX")
	}
}

// at begins a sentence about a directive.
func at(line int, directive string) string {
	if directive == "" {
		return fmt.Sprintf("line %d: ", line)
	}
	return fmt.Sprintf("line %d: %s: ", line, feature.Shorten(directive))
}

// Where says where the directive is, as "line 3: proxy_read_timeout".
func (s Setting) Where() string { return strings.TrimSuffix(at(s.Line, s.Name), ": ") }
