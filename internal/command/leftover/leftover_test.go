package leftover

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

const prefix = "nginx.ingress.kubernetes.io"

func TestIngress(t *testing.T) {
	for _, c := range []struct {
		annotation, value string
		since             string // "-" for no leftover
	}{
		{prefix + "/secure-backends", "true", "0.21.0"},
		{prefix + "/grpc-backend", "true", "0.21.0"},
		{prefix + "/add-base-url", "true", "0.22.0"},
		{prefix + "/base-url-scheme", "https", "0.22.0"},
		{prefix + "/session-cookie-hash", "sha1", "0.24.0"},
		{prefix + "/mirror-uri", "/mirror", "0.28.1"},
		{"other.example/secure-backends", "true", "-"},
		{prefix + "/rewrite-target", "/", "0.22.0"},
		{prefix + "/rewrite-target", "/$1", "-"},
		{prefix + "/rewrite-target", "/x${rest}", "-"},
		{prefix + "/x-forwarded-prefix", "true", "0.24.0"},
		{prefix + "/x-forwarded-prefix", " False ", "0.24.0"},
		{prefix + "/x-forwarded-prefix", "/truly", "-"},
		{prefix + "/configuration-snippet", "satisfy any;", ""},
		{prefix + "/configuration-snippet", "deny all;satisfy\nany;", ""},
		{prefix + "/configuration-snippet", "allow 10.0.0.0/8;\n\tsatisfy any;", ""},
		{prefix + "/configuration-snippet", "# satisfy any", "-"},
		{prefix + "/configuration-snippet", "set $satisfy 1;", "-"},
		{prefix + "/server-snippet", "satisfy any;", "-"},
		{"nginx.org/rewrites", "x", ""},
		{"nginx.com/sticky-cookie-services", "x", ""},
		{"nginx.organic/rewrites", "x", "-"},
		{prefix + "/satisfy", "any", "-"},
	} {
		ing := &networkingv1.Ingress{}
		ing.Annotations = map[string]string{c.annotation: c.value}
		found := Ingress(ing, prefix)
		if c.since == "-" {
			if len(found) > 0 {
				t.Errorf("%s: %q: found %+v, want nothing", c.annotation, c.value, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Field != c.annotation || found[0].Since != c.since {
			t.Errorf("%s: %q: found %+v, want one since %q", c.annotation, c.value, found, c.since)
		}
		for _, l := range found {
			if l.Message == "" || l.Advice == "" || strings.Contains(l.Advice, "PREFIX") {
				t.Errorf("%s: the text is incomplete: %+v", c.annotation, l)
			}
		}
	}
}

func TestDeployment(t *testing.T) {
	for _, c := range []struct {
		container corev1.Container
		found     string
	}{
		{corev1.Container{Args: []string{"/nginx-ingress-controller", "--sort-backends=true"}}, "--sort-backends"},
		{corev1.Container{Command: []string{"/headgate"}, Args: []string{"--force-namespace-isolation"}}, "--force-namespace-isolation"},
		{corev1.Container{Image: "registry.k8s.io/ingress-nginx/controller:v1", Args: []string{"--sort-backends", "--sort-backends-x"}}, "--sort-backends"},
		{corev1.Container{Image: "example.com/headgate:1", Args: []string{"--v=2"}}, ""},
		{corev1.Container{Image: "example.com/sorter:1", Args: []string{"--sort-backends"}}, ""},
	} {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "other"}, c.container}
		var fields []string
		for _, l := range Deployment(d) {
			fields = append(fields, l.Field)
		}
		if got := strings.Join(fields, " "); got != c.found {
			t.Errorf("%+v: found %q, want %q", c.container, got, c.found)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		from, to, since string
		has             bool
	}{
		{"0.0.0", "1.15.1", "0.22.0", true},
		{"0.22.0", "0.22.0", "0.22.0", true},
		{"0.22.1", "1.15.1", "0.22.0", false},
		{"0.0.0", "v0.21.9", "0.22.0", false},
		{"0.3.0", "0.9.0", "0.28.1", false},
		{"1.0.0", "1.15.1", "", true},
	} {
		versions, err := ParseVersions(c.from, c.to)
		if err != nil {
			t.Fatal(err)
		}
		if has := versions.Has(Leftover{Since: c.since}); has != c.has {
			t.Errorf("%s to %s has %q: %v, want %v", c.from, c.to, c.since, has, c.has)
		}
	}
	for _, bad := range [][2]string{{"new", "1.0.0"}, {"0.1.0", "1.x"}} {
		if _, err := ParseVersions(bad[0], bad[1]); err == nil {
			t.Errorf("%v are accepted", bad)
		}
	}
}
