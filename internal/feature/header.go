package feature

import (
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

// HasHeader reports whether a list of names in lower case has the name of a header.
func HasHeader(list []string, name string) bool { return slices.Contains(list, strings.ToLower(name)) }
