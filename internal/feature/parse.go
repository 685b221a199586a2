package feature

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/syntax/template"
)

// Bool accepts what ingress-nginx accepts: strconv.ParseBool.
func Bool(text string) (bool, error) {
	b, err := strconv.ParseBool(text)
	if err != nil {
		return false, errors.New("must be true or false")
	}
	return b, nil
}

// Optional takes an empty text for no value.
func Optional[T any](parse func(string) (T, error)) func(string) (T, error) {
	return func(text string) (value T, err error) {
		if text == "" {
			return value, nil
		}
		return parse(text)
	}
}

// Either returns a parser of two words; the first one is true.
func Either(yes, no string) func(string) (bool, error) {
	parse := Word(yes, no)
	return func(text string) (bool, error) {
		text, err := parse(strings.TrimSpace(text))
		return text == yes, err
	}
}

// Word returns a parser of two words.
func Word(one, other string) func(string) (string, error) {
	return func(text string) (string, error) {
		if text != one && text != other {
			return "", fmt.Errorf("must be %s or %s", one, other)
		}
		return text, nil
	}
}

// Matching returns a parser of texts of at most length bytes that an expression matches.
// Must says in the error what they must be.
func Matching(expression string, length int, must string) func(string) (string, error) {
	form := regexp.MustCompile(expression)
	return func(text string) (string, error) {
		if len(text) > length || !form.MatchString(text) {
			return "", errors.New(must)
		}
		return text, nil
	}
}

// Int returns a parser of whole numbers from minimum to maximum.
func Int(minimum, maximum int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < minimum || n > maximum {
			return 0, fmt.Errorf("must be an integer from %d to %d", minimum, maximum)
		}
		return n, nil
	}
}

// OneOf returns a parser of whole numbers out of a list.
func OneOf(allowed ...int) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || !slices.Contains(allowed, n) {
			return 0, fmt.Errorf("must be one of %s", strings.ReplaceAll(strings.Trim(fmt.Sprint(allowed), "[]"), " ", ", "))
		}
		return n, nil
	}
}

// List reads entries separated by commas. Empty ones are dropped.
func List(text string) ([]string, error) {
	var list []string
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			list = append(list, entry)
		}
	}
	return list, nil
}

// TemplateOf returns a parser of templates whose text is empty or accepted.
func TemplateOf(accept func(string) (string, error), names bool) func(string) (template.Template, error) {
	return Optional(func(text string) (template.Template, error) {
		if _, err := accept(text); err != nil {
			return nil, err
		}
		return template.Parse(text, names)
	})
}
