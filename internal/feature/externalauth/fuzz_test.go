package externalauth

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/model"
)

var (
	hostForm = regexp.MustCompile(`^([a-z0-9_.-]+|\[[0-9a-f:.]+\])$`)
	uriForm  = regexp.MustCompile(`^/[A-Za-z0-9\-._~:/?\[\]@!&'()*+,;=%]*$`)
)

func FuzzParseURL(f *testing.F) {
	for _, text := range []string{
		"", "http://a.b/c?d=$request_uri#e", "https://$host/oauth2/auth", "http://[::1]:80", "http://10.0.0.1:8080/$uri", "http://a:b@c/",
		"http://unix:/x:/", "https://$http_x/", "http://a.b:99999/", "http://[fe80::1%25eth0]/", "http://a.b./", "http://A.B/ c", "http://::1/", "http://[1.2.3.4]/",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseURL(text)
		if err != nil || text == "" {
			return
		}
		call := got.call
		if call.SameHost != (call.Host == "") || call.Port == 0 || call.SameHost && !strings.Contains(text, "$") {
			t.Errorf("%q: %+v", text, call)
		}
		if call.Host != "" && !hostForm.MatchString(call.Host) {
			t.Errorf("%q: host %q", text, call.Host)
		}
		if parts := strings.Split(call.Backend(), "/"); len(parts) != 3 {
			t.Errorf("%q: backend %q", text, call.Backend())
		}
		if address, ok := model.Address(call.Host); ok && address.Zone() != "" {
			t.Errorf("%q: address %v", text, address)
		}
		for i, piece := range got.uri {
			literal := piece.Literal
			if i > 0 {
				literal = "/" + literal
			}
			if piece.Variable == "" && !uriForm.MatchString(literal) {
				t.Errorf("%q: %q in the URI", text, piece.Literal)
			}
		}
		if call.Path != "" && got.pathVaries {
			t.Errorf("%q: path %q is known", text, call.Path)
		}
	})
}

func FuzzParseValidity(f *testing.F) {
	for _, text := range []string{"", "200 202 401 5m", "any 1s,200 1y", "1ms", ",", "200", "200 x", "9999999999s", "99 1m"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseValidity(text)
		if err != nil {
			return
		}
		for _, v := range list {
			if v[1] < 0 || v[1] > maxSeconds || v[0] != 0 && (v[0] < 100 || v[0] > 599) {
				t.Errorf("%q: %+v", text, v)
			}
		}
	})
}

func FuzzHeaderValue(f *testing.F) {
	f.Add("X-A", "$host")
	f.Add("Content-Length", "1")
	f.Add("X", "a\r\nb")
	f.Fuzz(func(t *testing.T, name, text string) {
		value, err := headerValue(name, text)
		if err != nil {
			return
		}
		encoded, err := json.Marshal([2]any{name, value})
		if err != nil || strings.ContainsAny(string(encoded), "\r\n") || strings.EqualFold(name, "content-length") {
			t.Errorf("%q: %q gives %s, %v", name, text, encoded, err)
		}
	})
}
