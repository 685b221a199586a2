package finding

import (
	"fmt"
	"regexp"
	"strings"
)

// Lengths of what a finding quotes, in bytes: both a value and the error about it may
// have text of a tenant.
const (
	MaxValue = 80
	MaxError = 300
)

// Shorten cuts a text of a tenant for a finding, without users of URLs.
func Shorten(text string) string { return Cut(WithoutUser(text), MaxValue) }

// Cut shortens a text, without a broken character at its end.
func Cut(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length], "") + "…"
}

// ShortenList joins the elements of a list, cut for a finding.
func ShortenList(list []string) string { return CutList(strings.Join(list, ", "), MaxValue) }

// CutList shortens a text with a list after one of its elements, and says how many
// follow. If the first one is too long, it cuts the text as Cut does.
func CutList(text string, length int) string {
	if len(text) <= length {
		return text
	}
	const comma = ", "
	end := strings.LastIndex(text[:length], comma)
	if end <= 0 {
		return Cut(text, length)
	}
	return fmt.Sprintf("%s and %d more", text[:end], strings.Count(text[end:], comma))
}

var userForm = regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://)[^/?#\s]*@`)

// WithoutUser replaces the user and the password in URLs of a text: findings are for more people
// than the object that has them.
func WithoutUser(text string) string {
	if !strings.Contains(text, "@") {
		return text
	}
	return userForm.ReplaceAllString(text, "$1…@")
}
