package review

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/headgate/headgate/internal/finding"
)

// A Decision is what is decided about an Ingress.
type Decision struct {
	// Refused are the reasons for which the Ingress is refused. Without any, it is let in.
	Refused []finding.Finding
	// Warned are the findings that its author is warned of.
	Warned []finding.Finding
	// Measured is zero unless Settings.Measure is set.
	Measured Measured
	// object is the Ingress in findings.
	object string
}

func (d *Decision) add(f finding.Finding, v Verdict) {
	switch v {
	case Refuse:
		d.Refused = append(d.Refused, f)
	case Warn:
		d.Warned = append(d.Warned, f)
	}
}

// finish sorts the findings, and leaves out warnings of what the Ingress is refused for.
func (d Decision) finish() Decision {
	d.Refused = finding.Sort(d.Refused)
	d.Warned = slices.DeleteFunc(finding.Sort(d.Warned), func(w finding.Finding) bool {
		return slices.ContainsFunc(d.Refused, func(f finding.Finding) bool {
			return f.Object == w.Object && f.Field == w.Field && f.Code == w.Code
		})
	})
	return d
}

// Allowed reports whether the Ingress is let in.
func (d Decision) Allowed() bool { return len(d.Refused) == 0 }

// maxSentences is how many findings an answer has.
const maxSentences = 10

// Message says why the Ingress is refused, empty if it is not.
func (d Decision) Message() string {
	return strings.Join(d.sentences(d.Refused, func(f finding.Finding) string { return f.Message }), "; ")
}

// Warnings are texts for the author of the Ingress.
func (d Decision) Warnings() []string {
	return d.sentences(d.Warned, func(f finding.Finding) string {
		if f.Effect == "" {
			return f.Message
		}
		return f.Message + "; " + f.Effect
	})
}

func (d Decision) sentences(fs []finding.Finding, say func(finding.Finding) string) []string {
	var list []string
	for i, f := range fs {
		if i == maxSentences {
			return append(list, fmt.Sprintf("… and %d more", len(fs)-i))
		}
		at := f.Field
		if f.Object != d.object {
			at = strings.TrimSpace(f.Object + " " + at)
		}
		text := say(f)
		if at != "" {
			text = at + ": " + text
		}
		list = append(list, oneLine(text))
	}
	return list
}

// oneLine makes a text fit for a header, which warnings are sent in.
func oneLine(text string) string {
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text), "�")
}
