// Package header knows names and values of HTTP headers: which may be set, and which must not.
//
// It must not know who sets them.
package header

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// RequestFraming are the headers, in lower case, that say where a request ends, and how its
// connection goes on. With another value, a server could read one request as two.
func RequestFraming() []string {
	return []string{
		"connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "proxy-connection", "te", "trailer",
		"transfer-encoding", "upgrade",
	}
}

// ResponseFraming are those of responses.
func ResponseFraming() []string {
	return []string{
		"connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
	}
}

// Has reports whether a list of names in lower case has the name of a header.
func Has(list []string, name string) bool { return slices.Contains(list, strings.ToLower(name)) }

// Limits of the headers that a ConfigMap has: each request or response has them too. The
// first is their number, the others are bytes: of all names and values, and of one value.
const (
	maxHeaders     = 64
	maxHeaderBytes = 16 << 10
	maxValue       = 4096
)

var headerName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)

// IsName reports whether a text consists of 1 to 200 letters, digits, - and _.
func IsName(text string) bool { return headerName.MatchString(text) }

// Check returns an error for a ConfigMap with too many headers.
func Check(data map[string]string) error {
	bytes := 0
	for name, value := range data {
		bytes += len(name) + len(value)
	}
	if len(data) > maxHeaders || bytes > maxHeaderBytes {
		return fmt.Errorf("%d headers of %d bytes together: must have at most %d of %d bytes", len(data), bytes, maxHeaders, maxHeaderBytes)
	}
	return nil
}

// Value reads the value of a header: it is one line of ASCII, without spaces around it.
func Value(text string) (string, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxValue || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "", fmt.Errorf("the value of a header must be one line of ASCII of at most %d bytes", maxValue)
	}
	return text, nil
}
