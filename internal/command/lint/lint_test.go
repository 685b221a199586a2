package lint

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/headgate/headgate/internal/command/snapshot"
	"github.com/headgate/headgate/internal/feature/all"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/source/file"
	"github.com/headgate/headgate/internal/store"
)

// TestRules: each code has a complete rule.
func TestRules(t *testing.T) {
	parsed, err := parser.ParseFile(token.NewFileSet(), "../../finding/finding.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Code" {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, code)
		}
		return true
	})
	slices.Sort(codes)
	if len(codes) < 10 || !slices.Equal(codes, Codes()) {
		t.Errorf("findings have the codes %q, rules %q", codes, Codes())
	}
	for _, r := range rules() {
		if r.short == "" || r.help == "" || strings.HasSuffix(r.short, ".") || !strings.HasSuffix(r.help, ".") {
			t.Errorf("rule %+v", r)
		}
	}
	if Known("") || !Known(finding.Conflict) {
		t.Error("Known")
	}
}

// TestSeverity: the kind of a missing object decides, not text of tenants.
func TestSeverity(t *testing.T) {
	for _, c := range []struct {
		message, kinds string
		want           Severity
	}{
		{"Secret Service does not exist", "Secret", Error},
		{"Secret Service does not exist", "Service", Notice},
		{"the Service does not exist, but an Ingress refers to it", "Secret", Notice},
		{`the Service has no TCP port "Secret", but an Ingress refers to it`, "Service", Error},
		{"ConfigMap x does not exist", "", Notice},
		{"x does not exist", "", Error},
	} {
		kinds := map[string]int{c.kinds: 1}
		if got := severityOf(finding.Finding{Code: finding.MissingObject, Message: c.message}, kinds); got != c.want {
			t.Errorf("%s among %s: %s, want %s", c.message, c.kinds, got, c.want)
		}
	}
	if got := severityOf(finding.Finding{Code: "New"}, nil); got != Error {
		t.Errorf("a code without a rule is %q", got)
	}
}

const bad = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  annotations:
    nginx.ingress.kubernetes.io/ssl-redirect: "yse"
    nginx.ingress.kubernetes.io/no-such-thing: "1"
spec:
  tls: [{secretName: gone, hosts: [a.test]}]
  rules:
  - host: a.test
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
---
kind: Ingress
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: second}
spec:
  defaultBackend: {service: {name: web, port: {number: 80}}}
---
apiVersion: v1
kind: Service
metadata: {name: other}
---
apiVersion: v1
kind: Service
metadata: {name: other}
`

// check lints one file of a folder.
func check(t *testing.T, text string) Report {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a b#c.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := file.Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := snapshot.Build(read.Changes, snapshot.Settings{
		Store:    store.Settings{IngressClass: "nginx", WatchWithoutClass: true, Classless: true},
		Features: all.Features(), AnnotationPrefix: "nginx.ingress.kubernetes.io",
	})
	if err != nil {
		t.Fatal(err)
	}
	return Check(read, snap, Options{Root: folder, Version: "1.2.3", Show: func(path string) string {
		return strings.ReplaceAll(strings.TrimPrefix(path, folder+"/"), folder, "root")
	}})
}

// TestCluster: objects of a cluster have no location, and what is missing does not exist.
func TestCluster(t *testing.T) {
	object := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "shop", Name: name} }
	ing := &networkingv1.Ingress{ObjectMeta: object("web")}
	ing.Annotations = map[string]string{"nginx.ingress.kubernetes.io/ssl-redirect": "yse"}
	kind := networkingv1.PathTypePrefix
	ing.Spec.Rules = []networkingv1.IngressRule{{Host: "shop.test", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
		Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &kind, Backend: networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: "gone", Port: networkingv1.ServiceBackendPort{Number: 80}},
		}}},
	}}}}
	ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"shop.test"}, SecretName: "pair"}}
	changes := []source.Change{{Object: ing}}
	snap, err := snapshot.Build(changes, snapshot.Settings{
		Store:    store.Settings{IngressClass: "nginx", WatchWithoutClass: true},
		Features: all.Features(), AnnotationPrefix: "nginx.ingress.kubernetes.io",
	})
	if err != nil {
		t.Fatal(err)
	}
	report := CheckCluster(changes, snap, Options{Version: "1.2.3"})
	var out bytes.Buffer
	if err := writeText(&out, report); err != nil {
		t.Fatal(err)
	}
	const want = `error: ingress/shop/web nginx.ingress.kubernetes.io/ssl-redirect: invalid value "yse": must be true or false; using the default [InvalidValue]
error: ingress/shop/web spec.tls[0].secretName: Secret pair does not exist; the default certificate is served for shop.test [MissingObject]
error: ingress/shop/web refers to service/shop/gone metadata.name: the Service does not exist, but an Ingress refers to it; requests to backend shop/gone/80 are answered 503 [MissingObject]
`
	if out.String() != want || report.Ingresses != 1 || report.Served != 1 {
		t.Errorf("%s:\n%s", report.Summary(), out.String())
	}
}

func sarifOf(t *testing.T, r Report) map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := writeSARIF(&out, r); err != nil {
		t.Fatal(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(out.Bytes(), &whole); err != nil {
		t.Fatal(err)
	}
	return whole
}

// get follows names and indexes into JSON.
func get[T any](t *testing.T, from any, way ...any) T {
	t.Helper()
	for _, step := range way {
		switch step := step.(type) {
		case string:
			from = from.(map[string]any)[step]
		case int:
			from = from.([]any)[step]
		}
	}
	value, ok := from.(T)
	if !ok {
		t.Fatalf("%v is %#v", way, from)
	}
	return value
}

// TestSARIF: the output has what SARIF 2.1.0 requires and what code hosts read.
func TestSARIF(t *testing.T) {
	r := check(t, bad)
	if r.Errors != 6 || r.Notices != 1 {
		t.Errorf("%d errors, %d notices: %v", r.Errors, r.Notices, r.Results)
	}
	whole := sarifOf(t, r)
	if get[string](t, whole, "version") != "2.1.0" || len(get[[]any](t, whole, "runs")) != 1 {
		t.Errorf("not one run of SARIF 2.1.0: %v", whole)
	}
	if schema, err := url.Parse(get[string](t, whole, "$schema")); err != nil || !schema.IsAbs() || !strings.HasSuffix(schema.Path, "sarif-schema-2.1.0.json") {
		t.Errorf("schema %v %v", schema, err)
	}
	driver := get[map[string]any](t, whole, "runs", 0, "tool", "driver")
	if driver["name"] == "" || driver["version"] != "1.2.3" {
		t.Errorf("driver %v", driver)
	}
	levels := []string{"none", "note", "warning", "error"}
	for _, rule := range get[[]any](t, driver, "rules") {
		for _, way := range [][]any{{"id"}, {"shortDescription", "text"}, {"fullDescription", "text"}, {"help", "text"}} {
			if get[string](t, rule, way...) == "" {
				t.Errorf("%v of rule %v is empty", way, rule)
			}
		}
		if level := get[string](t, rule, "defaultConfiguration", "level"); !slices.Contains(levels, level) {
			t.Errorf("level %q", level)
		}
	}
	results := get[[]any](t, whole, "runs", 0, "results")
	if len(results) != len(r.Results) {
		t.Fatalf("%d results, want %d", len(results), len(r.Results))
	}
	prints := map[string]bool{}
	for _, result := range results {
		index := int(get[float64](t, result, "ruleIndex"))
		if id := get[string](t, driver, "rules", index, "id"); id != get[string](t, result, "ruleId") {
			t.Errorf("rule %d is %s: %v", index, id, result)
		}
		if !slices.Contains(levels, get[string](t, result, "level")) || get[string](t, result, "message", "text") == "" {
			t.Errorf("result %v", result)
		}
		place := get[map[string]any](t, result, "locations", 0, "physicalLocation")
		at, err := url.Parse(get[string](t, place, "artifactLocation", "uri"))
		if err != nil || at.IsAbs() || at.Path != "a b#c.yaml" || at.Fragment != "" {
			t.Errorf("uri %v %v", at, err)
		}
		if get[float64](t, place, "region", "startLine") < 1 {
			t.Errorf("place %v", place)
		}
		print := get[string](t, result, "partialFingerprints", fingerprintName)
		if prints[print] || len(print) != 32 {
			t.Errorf("fingerprint %q of %v", print, result)
		}
		prints[print] = true
	}
}

// TestNoResults: SARIF requires a list, and a location without a line gets one.
func TestNoResults(t *testing.T) {
	if results := get[[]any](t, sarifOf(t, check(t, "")), "runs", 0, "results"); len(results) != 0 {
		t.Errorf("results %v", results)
	}
	r := Report{Results: []Result{{Path: "m"}, {Path: "/m"}, {Path: "../m"}, {Path: "a:b"}}}
	for i, want := range []string{"m", "file:///m", "../m", "./a:b"} {
		place := get[map[string]any](t, sarifOf(t, r), "runs", 0, "results", i, "locations", 0, "physicalLocation")
		if got := get[string](t, place, "artifactLocation", "uri"); got != want || get[float64](t, place, "region", "startLine") != 1 {
			t.Errorf("%v, want %s", place, want)
		}
	}
}

// TestFingerprints: they stay the same when everything moves, and differ between
// findings.
func TestFingerprints(t *testing.T) {
	prints := func(r Report) []string {
		var list []string
		for _, one := range r.Results {
			list = append(list, one.fingerprint())
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	before, after := check(t, bad), check(t, "# moved\n\n"+strings.ReplaceAll(bad, "\n---", "\n\n\n---"))
	if before.Results[0].Line == after.Results[0].Line {
		t.Fatal("nothing moved")
	}
	if a, b := prints(before), prints(after); !slices.Equal(a, b) || len(a) != len(before.Results) {
		t.Errorf("%q became %q", a, b)
	}
}
