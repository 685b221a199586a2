package modsecurity

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of what a tenant writes. A rule is about 5 KB in each location, and a regular
// expression can be more.
const (
	maxBytes      = 16 << 10
	maxDirectives = 200
	// maxPatterns bounds the compiled regular expressions, in bytes.
	maxPatterns = 512 << 10
)

// Bounds of what requests cost. Tenants may only lower them.
const (
	maxRequestBody = 13107200
	maxArguments   = 1000
	maxMatch       = 1000
)

// bounds come first in the file of a tenant. The last setting of a file counts.
var bounds = fmt.Sprintf("SecRequestBodyLimit %d\nSecArgumentsLimit %d\nSecPcreMatchLimit %d\nSecPcreMatchLimitRecursion %d\n",
	maxRequestBody, maxArguments, maxMatch, maxMatch)

// rules are what remains of a tenant's text, written again: one directive a line, with
// arguments that ModSecurity can read in one way only.
type rules struct {
	text string
	// core is set where the text includes the core rules.
	core bool
	// lines are those of the tenant's text that the lines stand for.
	lines []int
}

func (r rules) String() string { return "" }

// parseRules takes the directives that are known to be harmless. All others are refused: those
// that read files, run programs, load modules, look up names, or reach what other routes keep.
func parseRules(text string) (rules, error) {
	if len(text) > maxBytes {
		return rules{}, fmt.Errorf("must have at most %d bytes", maxBytes)
	}
	lines, err := linesOf(text)
	if err != nil {
		return rules{}, err
	}
	p := parser{}
	var written []int
	for _, l := range lines {
		if err := p.directive(l.words); err != nil {
			return rules{}, fmt.Errorf("must be rules that modsecurity.md allows: line %d: %w", l.number, err)
		}
		for len(written) < strings.Count(p.out.String(), "\n") {
			written = append(written, l.number)
		}
	}
	if p.count > maxDirectives {
		return rules{}, fmt.Errorf("must have at most %d directives", maxDirectives)
	}
	return rules{p.out.String(), p.core, written}, nil
}

// withPlace is a message of NGINX about the file of these rules, with the tenant's line, and
// without what ModSecurity read.
func (r rules) withPlace(message string) string {
	message = withPlace(message)
	var n int
	if _, err := fmt.Sscanf(message, "line %d:", &n); err == nil {
		_, message, _ = strings.Cut(message, ": ")
		message = cmp.Or(withoutInput(message), "ModSecurity does not take it")
		if n -= strings.Count(bounds, "\n"); n > 0 && n <= len(r.lines) {
			message = fmt.Sprintf("line %d: %s", r.lines[n-1], message)
		}
	}
	return withoutInput(message)
}

// A line is a directive with its arguments.
type line struct {
	number int
	words  []string
}

// linesOf reads the text: lines that end with a backslash go on, "#" begins a comment, and
// arguments with spaces are in double quotes.
func linesOf(text string) ([]line, error) {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, isControl) {
		return nil, errors.New("must be text without control characters")
	}
	var list []line
	whole, begins := "", 1
	for i, part := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		if whole == "" {
			begins = i + 1
		}
		part = strings.TrimRight(part, " \t\r")
		if before, goesOn := strings.CutSuffix(part, `\`); goesOn {
			whole += before + " "
			continue
		}
		words, err := wordsOf(whole + part)
		if err != nil {
			return nil, fmt.Errorf("must be rules: line %d: %w", begins, err)
		}
		if whole = ""; len(words) > 0 {
			list = append(list, line{begins, words})
		}
	}
	if whole != "" {
		return nil, errors.New("must not end with a backslash")
	}
	return list, nil
}

func isControl(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f }

// wordsOf splits a line. Words keep the backslashes before quotes.
func wordsOf(text string) ([]string, error) {
	var words []string
	for {
		text = strings.TrimLeft(text, " \t")
		if text == "" || words == nil && text[0] == '#' {
			return words, nil
		}
		if text[0] != '"' {
			end := strings.IndexAny(text, " \t")
			if end < 0 {
				end = len(text)
			}
			if strings.Contains(text[:end], `"`) {
				return nil, errors.New("a quote must begin an argument")
			}
			words, text = append(words, text[:end]), text[end:]
			continue
		}
		end := quoteEnd(text)
		if end < 0 {
			return nil, errors.New("a quote has no end")
		}
		words, text = append(words, text[1:end]), text[end+1:]
		if text != "" && text[0] != ' ' && text[0] != '\t' {
			return nil, errors.New("a space must follow a quote")
		}
	}
}

// quoteEnd is where the quote that the text begins with ends, -1 if it has no end.
func quoteEnd(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// A parser checks directives and writes them.
type parser struct {
	out   strings.Builder
	core  bool
	count int
	// patterns is the size of the compiled regular expressions.
	patterns int
}

func (p *parser) directive(words []string) error {
	name, arguments := words[0], words[1:]
	p.count++
	if strings.EqualFold(name, "Include") {
		return p.include(arguments)
	}
	d, known := find(allowed(), name)
	if !known {
		return fmt.Errorf("the directive %s is not allowed", name)
	}
	if len(arguments) < d.least || len(arguments) > max(d.least, len(d.arguments)) && !d.more {
		return fmt.Errorf("%s has another number of arguments", d.name)
	}
	p.out.WriteString(d.name)
	for i, text := range arguments {
		check := d.arguments[min(i, len(d.arguments)-1)]
		written, err := check(p, text)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		p.out.WriteString(" " + written)
	}
	p.out.WriteString("\n")
	return nil
}

// include takes the files that Headgate has rules for.
func (p *parser) include(arguments []string) error {
	switch {
	case len(arguments) == 1 && arguments[0] == coreInclude:
		p.core = true
	case len(arguments) == 1 && arguments[0] == baseInclude:
		p.out.WriteString(base)
	default:
		return fmt.Errorf("only %s and %s can be included", coreInclude, baseInclude)
	}
	return nil
}

// adminRules are the rules of the administrator, who may include any file.
type adminRules struct {
	text string
	// core is set where they include the core rules, and includes where they include other
	// files.
	core, includes bool
}

func (r adminRules) String() string { return "" }

func parseAdminRules(text string) (r adminRules, err error) {
	var kept []string
	for part := range strings.Lines(text) {
		words := strings.Fields(strings.ReplaceAll(part, `"`, ""))
		include := len(words) == 2 && strings.EqualFold(words[0], "Include")
		switch {
		case include && words[1] == coreInclude:
			r.core = true
		case include:
			r.includes = true
			fallthrough
		default:
			kept = append(kept, strings.TrimRight(part, "\r\n"))
		}
	}
	if !slices.ContainsFunc(kept, func(part string) bool { return strings.TrimSpace(part) != "" }) {
		return r, nil
	}
	r.text = strings.Join(kept, "\n") + "\n"
	return r, nil
}
