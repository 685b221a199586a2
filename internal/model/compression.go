package model

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/syntax/nginxsyntax"
)

// Compression is how responses are compressed for clients that accept it.
type Compression struct {
	Gzip, Brotli Encoder
	// GzipDisable are User-Agents that get no gzip.
	GzipDisable UserAgents
}

// On reports whether anything is compressed.
func (c Compression) On() bool { return c.Gzip.On || c.Brotli.On }

// An Encoder compresses responses in one encoding.
type Encoder struct {
	On    bool
	Level int
	// MinLength is the smallest Content-Length that is compressed, in bytes.
	MinLength int
	Types     MIMETypes
}

// MIMETypes are types of content, besides text/html.
type MIMETypes struct{ text string }

// NGINX has a table of 64 bytes a bucket for these types, which no directive changes: it rejects all of that
// for a longer one.
const (
	maxMIMEType  = 46
	maxMIMETypes = 200
)

var mimeTypeForm = regexp.MustCompile(`^[a-z0-9][a-z0-9!#&^_.+-]*/[a-z0-9][a-z0-9!#&^_.+-]*$`)

// NewMIMETypes takes types separated by spaces, in any case, or * for all.
func NewMIMETypes(text string) (MIMETypes, error) {
	list := strings.Fields(nginxsyntax.LowerASCII(text))
	for _, one := range list {
		if one != "*" && (len(one) > maxMIMEType || !mimeTypeForm.MatchString(one)) {
			return MIMETypes{}, fmt.Errorf("%.60q: must be a MIME type such as text/css, of at most %d bytes, or *", one, maxMIMEType)
		}
	}
	if len(list) > maxMIMETypes {
		return MIMETypes{}, fmt.Errorf("must be at most %d MIME types", maxMIMETypes)
	}
	slices.Sort(list)
	list = slices.DeleteFunc(slices.Compact(list), func(one string) bool { return one == "text/html" })
	if slices.Contains(list, "*") {
		list = []string{"*"}
	}
	return MIMETypes{strings.Join(list, " ")}, nil
}

// String is the types as nginx.conf has them, sorted, empty if text/html is the only one.
func (m MIMETypes) String() string { return m.text }

// UserAgents is an expression for values of the header User-Agent.
type UserAgents struct{ text, expression string }

// NewUserAgents takes an expression as it is written, and as NGINX can compile it.
func NewUserAgents(text, expression string) (UserAgents, error) {
	if strings.ContainsFunc(text+expression, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return UserAgents{}, errors.New("must have no control characters")
	}
	return UserAgents{text, expression}, nil
}

// String is the expression as it is written.
func (u UserAgents) String() string { return u.text }

// Quoted is the expression as nginx.conf has it.
func (u UserAgents) Quoted() string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(u.expression) + `"`
}
