package clientcert

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/syntax/pcre"
	"github.com/headgate/headgate/internal/syntax/template"
)

// The modes of auth-tls-verify-client.
const (
	modeOn           = "on"
	modeOff          = "off"
	modeOptional     = "optional"
	modeOptionalNoCA = "optional_no_ca"
)

func parseMode(text string) (string, error) {
	if text == "" {
		return modeOn, nil
	}
	if !slices.Contains([]string{modeOn, modeOff, modeOptional, modeOptionalNoCA}, text) {
		return "", errors.New("must be on, off, optional or optional_no_ca")
	}
	return text, nil
}

// A pattern is a regular expression as it is written, and as the data plane gets it.
type pattern struct{ written, text string }

func (p pattern) String() string { return p.written }

func parsePattern(text string) (pattern, error) {
	if !strings.HasPrefix(text, "CN=") {
		return pattern{}, errors.New("must be a regular expression that begins with CN=")
	}
	compiled, err := pcre.Compile(text, pcre.Options{})
	if err != nil {
		return pattern{}, fmt.Errorf("must be a regular expression: %w", err)
	}
	return pattern{text, compiled.Text()}, nil
}

// A page is where clients without a certificate go. Other pages than URLs have no target.
type page struct {
	text   string
	target template.Template
}

func (p page) String() string { return p.text }

var pageForm = regexp.MustCompile(`^(https?://|/|@)[A-Za-z0-9._~:/?#@!$&'()*+,;=%{}-]+$`)

// maxPage is in bytes.
const maxPage = 2000

func parsePage(text string) (page, error) {
	if len(text) > maxPage || !pageForm.MatchString(text) {
		return page{}, errors.New("must be a URL that begins with http:// or https://")
	}
	if !strings.HasPrefix(text, "http") {
		return page{text: text}, nil
	}
	target, err := template.Parse(text, false)
	return page{text, target}, err
}
