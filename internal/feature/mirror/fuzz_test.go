package mirror

import (
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/syntax/template"
)

var (
	targetHost = regexp.MustCompile(`^([a-z0-9_.-]+|\[[0-9a-f:.]+\])$`)
	uriForm    = regexp.MustCompile(`^[A-Za-z0-9\-._~:/?\[\]@&()*+,=%]*$`)
)

func literals(t template.Template) string {
	var b strings.Builder
	for _, piece := range t {
		b.WriteString(piece.Literal)
	}
	return b.String()
}

func FuzzParseTarget(f *testing.F) {
	for _, text := range []string{
		"", "http://a.b/c?d=$request_uri#e", "https://a.b$request_uri", "http://a${uri}", "http://[::1]:80", "http://a:b@c/", "http://unix:/x:/",
		"https://$http_x/", "http://a.b:99999/", "http://[fe80::1%25eth0]/", "http://a.b./", "http://::1/", "http://a{b}/", "http://a$uri_x/",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseTarget(text)
		if err != nil {
			return
		}
		call := got.call
		if call.SameHost || call.Port == 0 || !targetHost.MatchString(call.Host) || call.Name == "" {
			t.Errorf("%q: %+v", text, call)
		}
		if parts := strings.Split(call.Backend(), "/"); len(parts) != 3 {
			t.Errorf("%q: backend %q", text, call.Backend())
		}
		if len(got.uri) == 0 || !uriForm.MatchString(literals(got.uri)) {
			t.Errorf("%q: URI %v", text, got.uri)
		}
		if first := got.uri[0]; !strings.HasPrefix(first.Literal, "/") && first.Variable != "request_uri" && first.Variable != "uri" {
			t.Errorf("%q: the URI begins with %v", text, first)
		}
		if call.Path != "" && got.pathVaries {
			t.Errorf("%q: path %q is known", text, call.Path)
		}
	})
}

func FuzzParseHost(f *testing.F) {
	for _, text := range []string{"", "a.example:80", "${host}:1", "$", "a{b", "[::1]", "a\r\nb"} {
		f.Add(text)
	}
	form := regexp.MustCompile(`^[A-Za-z0-9\-._:\[\]]*$`)
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := parseHost(text); err == nil && !form.MatchString(literals(got)) {
			t.Errorf("%q: %v", text, got)
		}
	})
}
