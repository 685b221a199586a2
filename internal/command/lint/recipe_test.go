package lint_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestRecipes: what docs/snippets.md recommends has no errors.
func TestRecipes(t *testing.T) {
	text, err := os.ReadFile("../../../docs/snippets.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Recipes\n")
	recipes := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(recipes) < 10 {
		t.Fatalf("%d recipes", len(recipes))
	}
	for _, recipe := range recipes {
		if got := lintAnnotations(t, strings.TrimSpace(recipe[1])); !strings.Contains(got, "! 0 errors, 0 notices in 1 Ingress") {
			t.Errorf("%s\n%s", recipe[1], got)
		}
	}
}

// lintAnnotations is what lint says of an Ingress with annotations, in YAML, that may have snippets.
func lintAnnotations(t *testing.T, annotations string) string {
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: options, namespace: default}\ndata: {allow-snippet-annotations: \"true\", annotations-risk-level: Critical}\n"
	const service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {ports: [{port: 80}]}\n" +
		"---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web, namespace: default, labels: {kubernetes.io/service-name: web}}\n" +
		"addressType: IPv4\nports: [{port: 80}]\nendpoints: [{addresses: [10.0.0.1]}]\n"
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, "web.yaml", []byte(config+service+"---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: web\n  namespace: default\n  annotations:\n    "+
		strings.ReplaceAll(annotations, "\n", "\n    ")+
		"\nspec:\n  rules:\n  - host: app.example.com\n    http:\n      paths:\n      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}\n"))
	return command([]string{"lint", "-f", ".", "--configmap", "default/options", "--ignore", "MissingObject"})
}

var (
	advice = regexp.MustCompile(`; use (.*?); `)
	// A pair is an annotation with a value, and a bare one has none: keys and flags say that they are such.
	pair = regexp.MustCompile(`([a-z]+(?:-[a-z]+)*): "([^"]+)"`)
	bare = regexp.MustCompile(`(?:key )?(?:--)?\b[a-z]+(?:-[a-z]+)+\b`)
)

// TestAdviceIsTaken: an annotation that a finding recommends instead of a directive takes the value that is written there.
func TestAdviceIsTaken(t *testing.T) {
	const prefix = "nginx.ingress.kubernetes.io/"
	places := strings.NewReplacer("SERVICE", "web", "NAMESPACE", "default", "SECRET", "pair", "NAME", "other.example.com", "PATH", "check")
	for _, directive := range []string{
		"proxy_pass http://other;", "auth_request /auth;", "auth_basic Private;", "auth_basic_user_file /etc/nginx/passwd;", "modsecurity on;", "modsecurity_rules 'SecRuleEngine On';",
		"opentelemetry on;", "mirror /copy;", "mirror_request_body off;", "ssl_verify_client on;", "ssl_client_certificate /etc/ca.crt;", "ssl_ciphers HIGH;", "ssl_prefer_server_ciphers on;",
		"proxy_ssl_certificate /etc/tls.crt;", "server_name other.example.com;", "error_log /var/log/x.log;",
	} {
		kind := "configuration-snippet"
		if strings.HasPrefix(directive, "s") {
			kind = "server-snippet" // Some are allowed there alone.
		}
		said := lintAnnotations(t, prefix+kind+": |\n  "+directive)
		found := advice.FindStringSubmatch(said)
		if found == nil {
			t.Errorf("%s: no advice:\n%s", directive, said)
			continue
		}
		var annotations []string
		for _, p := range pair.FindAllStringSubmatch(found[1], -1) {
			annotations = append(annotations, prefix+p[1]+": '"+places.Replace(p[2])+"'")
		}
		for _, name := range bare.FindAllString(pair.ReplaceAllString(found[1], ""), -1) {
			t.Errorf("%s: the advice has %s without a value: %s", directive, name, found[1])
		}
		if len(annotations) == 0 {
			t.Errorf("%s: the advice has no annotation: %s", directive, found[1])
			continue
		}
		if got := lintAnnotations(t, strings.Join(annotations, "\n")); strings.Contains(got, "invalid value") || strings.Contains(got, "not supported") || strings.Contains(got, "unknown") {
			t.Errorf("%s: the advice %s is refused:\n%s", directive, found[1], got)
		}
	}
}
