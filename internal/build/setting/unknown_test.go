package setting

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/finding/nearest"
	"github.com/headgate/headgate/internal/ingressnginx"
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

// A key of ingress-nginx that Headgate does not have is not taken for a misspelt one, nor is
// the name of an annotation.
func TestUnknownKeys(t *testing.T) {
	annotation := feature.Setting[bool]{Annotation: "rewrite-it", Parse: feature.Bool, Doc: "Rewrites."}
	r := NewReader([]feature.Feature{{Name: "rewrite", Settings: []feature.AnySetting{annotation}}}, "nginx.ingress.kubernetes.io")
	for name, want := range map[string]string{
		"proxy-bufer-size":    `unknown key (did you mean "proxy-buffer-size"?)`,
		"use-geoip":           "ingress-nginx removed it in 1.10, since its databases are no longer published: use use-geoip2",
		"proxy-buffer-number": "ingress-nginx renamed it in 2019: use proxy-buffers-number",
		"rewrite-it":          "unknown key: it is an annotation",
		"no-such-thing":       "unknown key",
	} {
		if got := keyFinding(t, r, name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// keyFinding is what the finding of a ConfigMap's only key says.
func keyFinding(t *testing.T, r *Reader, name string) string {
	t.Helper()
	problems := r.parseConfig(&corev1.ConfigMap{Data: map[string]string{name: "x"}}).Problems
	if len(problems) != 1 || problems[0].Effect != "it has no effect" {
		t.Fatalf("%s: got %v", name, problems)
	}
	return problems[0].Message
}

// TestRefused: each setting that Headgate refuses has a finding with the reason.
func TestRefused(t *testing.T) {
	r := NewReader(nil, "nginx.ingress.kubernetes.io")
	for _, refused := range ingressnginx.RefusedKeys() {
		for _, name := range refused.Names {
			if got, want := keyFinding(t, r, name), plain(refused.Reason); got != want {
				t.Errorf("key %s: got %s, want %s", name, got, want)
			}
		}
	}
	for _, refused := range ingressnginx.RefusedAnnotations() {
		for _, name := range refused.Names {
			whole := "nginx.ingress.kubernetes.io/" + name
			fs := r.UnknownAnnotations(&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{whole: "x"}}})
			if len(fs) != 1 || fs[0].Field != whole || fs[0].Code != finding.NotSupported || fs[0].Message != plain(refused.Reason) {
				t.Errorf("annotation %s: got %v, want %s", name, fs, refused.Reason)
			}
		}
	}
}

// plain is a text without the marks of Markdown.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }
