package answerrewrite

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/headgate/headgate/internal/syntax/pcre"
	"github.com/headgate/headgate/internal/syntax/template"
)

// off, alone, rewrites nothing.
const off = "off"

// maxLength is the longest text, in bytes.
const maxLength = 1000

var (
	texts   = regexp.MustCompile(`^[A-Za-z0-9\-._~/:,?&=]+$`)
	targets = regexp.MustCompile(`^[A-Za-z0-9\-._~/:,?&=$]+$`)
	domains = regexp.MustCompile(`^[A-Za-z0-9\-._~/:]+$`)

	cookieAttributes = regexp.MustCompile(`^(; ?[A-Za-z-]+(=[A-Za-z0-9\-._~/:]+)?)+;?$`)
)

func parseText(text string) (string, error) {
	return text, check(text, texts, "-._~/:,?&=")
}

// A target is the replacement for the start of a redirect.
type target struct {
	text string
	// template is nil for a text without variables.
	template template.Template
}

func (t target) String() string { return t.text }

func parseTarget(text string) (target, error) {
	if !strings.Contains(text, "$") {
		_, err := parseText(text)
		return target{text: text}, err
	}
	if err := check(text, targets, "-._~/:,?&=, and variables such as $1 and $host"); err != nil {
		return target{}, err
	}
	template, err := template.Parse(text, false)
	return target{text, template}, err
}

func check(text string, allowed *regexp.Regexp, marks string) error {
	if len(text) > maxLength {
		return fmt.Errorf("must have at most %d bytes, not %d", maxLength, len(text))
	}
	if !allowed.MatchString(text) {
		return fmt.Errorf("must consist of letters, digits and %s", marks)
	}
	return nil
}

func parseFrom(text string) (match, error) {
	if text == off || text == "default" {
		return match{}, nil
	}
	if _, err := parseText(text); err != nil {
		return match{}, err
	}
	return newMatch(text, false)
}

// newMatch takes a text for an expression where NGINX does.
func newMatch(text string, caseless bool) (match, error) {
	expression, ok := strings.CutPrefix(text, "~")
	if !ok {
		return match{From: text}, nil
	}
	p, err := pcre.Compile(expression, pcre.Options{Caseless: caseless})
	if err != nil {
		return match{}, fmt.Errorf("invalid regular expression: %w", err)
	}
	return match{Pattern: p.Text(), Caseless: caseless}, nil
}

func parsePath(text string) (rule, error) {
	return parseRule(text, false, parseText)
}

// parseDomain ignores a dot at the start of a domain, as NGINX does.
func parseDomain(text string) (rule, error) {
	return parseRule(text, true, func(part string) (string, error) {
		return strings.TrimPrefix(part, "."), check(part, domains, "-._~/:")
	})
}

func parseRule(text string, caseless bool, parse func(string) (string, error)) (rule, error) {
	if text == off {
		return rule{}, nil
	}
	text, attributes, err := cutAttributes(text)
	if err != nil {
		return rule{}, err
	}
	parts := strings.Fields(text)
	if len(parts) != 2 {
		return rule{}, errors.New("must be off, or a text, a space and its replacement")
	}
	for i, part := range parts {
		if parts[i], err = parse(part); err != nil {
			return rule{}, err
		}
		if parts[i] == "" {
			return rule{}, errors.New("must not be a dot alone")
		}
	}
	from, err := newMatch(parts[0], caseless)
	if caseless {
		from.From = strings.ToLower(from.From)
	}
	return rule{match: from, To: parts[1] + attributes}, err
}

// cutAttributes cuts off what follows the replacement: "/; Secure; HttpOnly" replaces the path of a
// cookie and gives it these attributes.
func cutAttributes(text string) (rest, attributes string, err error) {
	rest, _, found := strings.Cut(text, ";")
	if !found {
		return text, "", nil
	}
	attributes = text[len(rest):]
	if len(attributes) > maxLength {
		return "", "", fmt.Errorf("must have at most %d bytes of attributes, not %d", maxLength, len(attributes))
	}
	if !cookieAttributes.MatchString(attributes) {
		return "", "", errors.New("attributes behind the replacement must be names, or names and values, each behind a semicolon")
	}
	return rest, attributes, nil
}
