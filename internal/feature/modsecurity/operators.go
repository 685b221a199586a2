package modsecurity

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/syntax/pcre"
)

// The operators that compare. None reads a file, runs a program or asks a server. ModSecurity
// reads what follows one of those without an argument as the next word of the line.
var (
	withArgument = strings.Fields(`beginsWith contains containsWord endsWith eq ge gt ipMatch le lt pm rx rxGlobal streq strmatch
		validateByteRange verifyCC verifySSN within`)
	withoutArgument = strings.Fields(`detectSQLi detectXSS unconditionalMatch validateUrlEncoding validateUtf8Encoding`)
)

// withPatterns are the operators whose argument is a regular expression.
var withPatterns = []string{"rx", "rxGlobal", "verifyCC", "verifySSN"}

// matchLimit begins regular expressions: ModSecurity 3.0.9 of Debian 12 ignores SecPcreMatchLimit.
// What follows can only lower it.
const matchLimit = "(*LIMIT_MATCH=1000)"

var addresses = regexp.MustCompile(`^[0-9A-Fa-f.:/, ]+$`)

// operator writes the operator with its name, also where the text leaves it out.
func operator(p *parser, text string) (string, error) {
	rest, negated := strings.CutPrefix(strings.TrimLeft(text, " \t"), "!")
	rest = strings.TrimLeft(rest, " \t")
	name, argument := "rx", rest
	if named, is := strings.CutPrefix(rest, "@"); is {
		name, argument, _ = strings.Cut(named, " ")
	}
	argument = strings.TrimSpace(argument)
	same := func(known string) bool { return strings.EqualFold(known, name) }
	mark := "@"
	if negated {
		mark = "!@"
	}
	if i := slices.IndexFunc(withoutArgument, same); i >= 0 {
		if argument != "" {
			return "", fmt.Errorf("the operator @%s must have no argument", withoutArgument[i])
		}
		return quoted(mark + withoutArgument[i]), nil
	}
	i := slices.IndexFunc(withArgument, same)
	if i < 0 {
		return "", fmt.Errorf("the operator @%s is not allowed", name)
	}
	name = withArgument[i]
	if err := operand(argument); err != nil {
		return "", fmt.Errorf("the argument of @%s %w", name, err)
	}
	if name == "ipMatch" && !addresses.MatchString(argument) {
		return "", errors.New("the argument of @ipMatch must be addresses and networks with commas between them")
	}
	if slices.Contains(withPatterns, name) {
		// With a variable, ModSecurity would compile what clients send, at each request.
		if strings.Contains(argument, "%") {
			return "", fmt.Errorf(`the argument of @%s must have no variables, and \x25 for %%`, name)
		}
		argument = strings.TrimPrefix(argument, matchLimit)
		if err := p.pattern(argument); err != nil {
			return "", err
		}
		argument = matchLimit + argument
	}
	return quoted(mark + name + " " + argument), nil
}

// operand checks the argument of an operator. A quote after a backslash or a percent sign would
// not end it.
func operand(text string) error {
	switch {
	case text == "":
		return errors.New("is missing")
	case strings.Contains(text, `"`):
		return errors.New(`must not have double quotes: a regular expression has \x22 instead`)
	case strings.HasSuffix(text, `\`) || strings.Contains(text, `\%`):
		return errors.New("must not have a backslash at its end or before %")
	}
	return macros(text)
}

// pattern bounds the memory of regular expressions, which each location takes.
func (p *parser) pattern(text string) error {
	compiled, err := pcre.Compile(text, pcre.Options{})
	if err != nil {
		return fmt.Errorf("the regular expression is invalid: %w", err)
	}
	if p.patterns += compiled.Size(); p.patterns > maxPatterns {
		return fmt.Errorf("the regular expressions take more than %d bytes", maxPatterns)
	}
	return nil
}
