package snippet

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/headgate/headgate/internal/finding"
)

// A Report takes what is wrong with a snippet. S is how its owner names the setting that the
// snippet comes from.
type Report[S any] interface {
	// Deny closes the routes of the snippet.
	Deny(setting S, code finding.Code, message string)
	// Warn leaves them open; effect says what is different.
	Warn(setting S, code finding.Code, message, effect string)
}

// ReportTo reports what of a snippet is not followed, or is and may surprise, and denies for what
// may control access.
func ReportTo[S any](s *Snippet, setting S, out Report[S]) {
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
		code, effect := finding.Unexpected, "it acts as in NGINX"
		if w.Idle {
			code, effect = finding.NoEffect, "nothing is missing: it has none in NGINX either"
		}
		out.Warn(setting, code, at(w.Line, w.Directive)+w.Message, effect)
	}
}

// at begins a sentence about a directive.
func at(line int, directive string) string {
	if directive == "" {
		return fmt.Sprintf("line %d: ", line)
	}
	return fmt.Sprintf("line %d: %s: ", line, finding.Shorten(directive))
}

// Where says where the directive is, as "line 3: proxy_read_timeout".
func (s Setting) Where() string { return strings.TrimSuffix(at(s.Line, s.Name), ": ") }
