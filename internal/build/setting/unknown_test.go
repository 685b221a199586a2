package setting

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

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

// A key of ingress-nginx that Headgate does not have is not taken for a misspelt one.
func TestUnknownKeys(t *testing.T) {
	r := NewReader(nil, "nginx.ingress.kubernetes.io")
	for name, want := range map[string]string{
		"proxy-bufer-size": `unknown key (did you mean "proxy-buffer-size"?)`,
		"gzip-level":       "Headgate does not have this key of ingress-nginx",
		"use-geoip":        "Headgate does not have this key of ingress-nginx",
		"no-such-thing":    "unknown key",
	} {
		problems := r.parseConfig(&corev1.ConfigMap{Data: map[string]string{name: "x"}}).Problems
		if len(problems) != 1 || problems[0].Message != want {
			t.Errorf("%s: got %v, want %s", name, problems, want)
		}
	}
}
