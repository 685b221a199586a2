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
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: options, namespace: default}\ndata: {allow-snippet-annotations: \"true\", annotations-risk-level: Critical}\n"
	const service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\nspec: {ports: [{port: 80}]}\n" +
		"---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web, namespace: default, labels: {kubernetes.io/service-name: web}}\n" +
		"addressType: IPv4\nports: [{port: 80}]\nendpoints: [{addresses: [10.0.0.1]}]\n"
	for _, recipe := range recipes {
		t.Chdir(t.TempDir())
		annotations := "    " + strings.ReplaceAll(strings.TrimSpace(recipe[1]), "\n", "\n    ")
		writeFile(t, "web.yaml", []byte(config+service+"---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: web\n  namespace: default\n  annotations:\n"+annotations+
			"\nspec:\n  rules:\n  - host: app.example.com\n    http:\n      paths:\n      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}\n"))
		if got := command([]string{"lint", "-f", ".", "--configmap", "default/options", "--ignore", "MissingObject"}); !strings.Contains(got, "! 0 errors, 0 notices in 1 Ingress") {
			t.Errorf("%s\n%s", recipe[1], got)
		}
	}
}
