package setting

import (
	"testing"

	"github.com/headgate/headgate/internal/nearest"
)

func TestNearest(t *testing.T) {
	r := NewReader(nil, "nginx.ingress.kubernetes.io")
	for name, want := range map[string]string{
		"ssl-redirct":       "ssl-redirect",
		"ssl-rediretc":      "ssl-redirect",
		"rewrite_target":    "rewrite-target",
		"proxy-bodysize":    "proxy-body-size",
		"auth-ulr":          "auth-url",
		"no-such-thing":     "",
		"x":                 "",
		"":                  "",
		"proxy-redirect-fr": "proxy-redirect-from",
	} {
		if got := nearest.Name(name, r.names); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
