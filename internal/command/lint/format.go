package lint

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/headgate/headgate/internal/command/plaintext"
	"github.com/headgate/headgate/internal/finding"
)

// A Format writes a report.
type Format func(io.Writer, Report) error

// FormatNamed returns the Format with a name: text, json or sarif.
func FormatNamed(name string) (Format, bool) {
	format, ok := map[string]Format{
		"text": writeText, "sarif": writeSARIF, "json": func(w io.Writer, r Report) error { return plaintext.WriteJSON(w, r) },
	}[name]
	return format, ok
}

// Summary returns the report in one sentence.
func (r Report) Summary() string {
	text := fmt.Sprintf("%s, %s in %s, of which %d served",
		count(r.Errors, "error", "errors"), count(r.Notices, "notice", "notices"), count(r.Ingresses, "Ingress", "Ingresses"), r.Served)
	const maxReasons = 5
	reasons := r.foreign
	if n := len(reasons) - maxReasons; n > 0 {
		reasons = append(slices.Clone(reasons[:maxReasons]), fmt.Sprintf("and %d more reasons", n))
	}
	if len(reasons) > 0 {
		text += " (" + printable(strings.Join(reasons, "; ")) + ")"
	}
	return text
}

func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// writeText prints a line for each result in the format of compilers, so that
// editors find the location. Further lines of a message begin with a mark: CI
// systems interpret some lines of the output as commands, and manifests may contain
// such lines.
func writeText(w io.Writer, r Report) error {
	out := bufio.NewWriter(w)
	for _, result := range r.Results {
		place := printable(result.Path)
		if result.Line > 0 {
			place = fmt.Sprintf("%s:%d", place, result.Line)
		}
		if place != "" {
			place += ": "
		}
		fmt.Fprintf(out, "%s%s: ", place, result.Severity)
		lines := strings.Split(result.text(), "\n")
		for i, line := range lines {
			if lines[i] = printable(line); i > 0 {
				lines[i] = "    | " + lines[i]
			}
		}
		fmt.Fprintf(out, "%s [%s]\n", strings.Join(lines, "\n"), result.Code)
	}
	return out.Flush()
}

// printable escapes characters that a terminal would not show as they are.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// text is the result without its location. Only messages about old versions have
// several lines.
func (r Result) text() string {
	about := printable(strings.TrimSpace(r.Object+" "+r.Field)) + ": "
	if r.Referrer != "" {
		about = r.Referrer + " refers to " + about
	}
	switch r.Code {
	case finding.OldVersion:
		return about + strings.TrimRight(r.Message, "\n") + "\n" + r.Effect
	case finding.BadManifest:
		about = ""
	}
	return about + printable(r.Message) + "; " + r.Effect
}
