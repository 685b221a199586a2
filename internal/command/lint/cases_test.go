package lint_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/internal/test/pkitest"
)

// A recordedCase is what this test reads of a case of test/compat.
type recordedCase struct {
	ControllerConfig map[string]any           `json:"controller-config"`
	Objects          []map[string]any         `json:"objects"`
	ConfigObjects    []map[string]any         `json:"config-objects"`
	Backends         map[string]recordedPorts `json:"backends"`
	Flags            []string                 `json:"flags"`
}

type recordedPorts struct {
	Ports []map[string]any `json:"ports"`
}

// leftToFixture are codes about certificates, and objects of other namespaces.
const leftToFixture = "BadCertificate,MissingObject,IncompleteChain,UnavailablePort"

// TestCasesWithoutErrors: a recorded case that is answered as recorded has no errors but those in
// testdata/cases.txt, each for something that is written and not served, in ingress-nginx as here.
func TestCasesWithoutErrors(t *testing.T) {
	root, err := filepath.Abs("../../../test/compat")
	if err != nil {
		t.Fatal(err)
	}
	passing := map[string]bool{}
	for _, id := range strings.Fields(string(read(t, filepath.Join(root, "passing.txt")))) {
		passing[id] = true
	}
	golden, err := filepath.Abs("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	pair := pkitest.New(t).Issue("case.corpus.test")
	got := map[string]bool{}
	cases := 0
	err = filepath.WalkDir(filepath.Join(root, "cases"), func(path string, _ fs.DirEntry, err error) error {
		id, found := strings.CutSuffix(strings.TrimPrefix(path, filepath.Join(root, "cases")+"/"), ".yaml")
		if err != nil || !found || !passing[id] {
			return err
		}
		cases++
		for _, line := range errorsOf(t, read(t, path), pair) {
			got[id+" "+line] = true
		}
		return nil
	})
	if err != nil || cases < 600 {
		t.Fatalf("%d cases: %v", cases, err)
	}
	lines := strings.Join(slices.Sorted(maps.Keys(got)), "\n") + "\n"
	if *update {
		writeFile(t, golden, []byte(lines))
		return
	}
	want := map[string]bool{}
	for line := range strings.Lines(string(read(t, golden))) {
		want[strings.TrimSpace(line)] = true
	}
	for line := range got {
		if !want[line] {
			t.Errorf("%s (go test -update writes it)", line)
		}
	}
	for line := range want {
		if !got[line] {
			t.Errorf("no more: %s", line)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

var placeholder = regexp.MustCompile(`\$\{[A-Z0-9_a-z:.-]+\}`)

// filled replaces the placeholders in all texts of a value; all certificates of the fixture are one here.
func filled(value any, pair pkitest.Pair) any {
	switch v := value.(type) {
	case map[string]any:
		for key, of := range v {
			v[key] = filled(of, pair)
		}
	case []any:
		for i, of := range v {
			v[i] = filled(of, pair)
		}
	case string:
		return placeholder.ReplaceAllStringFunc(v, func(name string) string {
			switch {
			case name == "${NS}" || name == "${SLUG}":
				return "case"
			case name == "${HOST}":
				return "case.corpus.test"
			case name == "${CLASS}":
				return "nginx"
			case strings.HasPrefix(name, "${CERT:") && strings.HasSuffix(name, ":key}"):
				return pair.Key
			case strings.HasPrefix(name, "${CERT:") && strings.HasSuffix(name, ":crl}"):
				return ""
			case strings.HasPrefix(name, "${CERT:"):
				return pair.Certificate
			}
			return "10.250.0.9"
		})
	}
	return value
}

// errorsOf are the errors of a case, as field and code, each once.
func errorsOf(t *testing.T, text []byte, pair pkitest.Pair) []string {
	t.Helper()
	var c recordedCase
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	objects := append(c.ConfigObjects, c.Objects...)
	for _, name := range slices.Sorted(maps.Keys(c.Backends)) {
		own := slices.ContainsFunc(c.Objects, func(o map[string]any) bool {
			metadata, _ := o["metadata"].(map[string]any)
			return o["kind"] == "Service" && metadata["name"] == name
		})
		if !own {
			objects = append(objects, serviceOf(name, c.Backends[name])...)
		}
	}
	if len(c.ControllerConfig) > 0 {
		objects = append(objects, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "options", "namespace": "options"}, "data": c.ControllerConfig})
	}
	for i, object := range objects {
		if object["kind"] == nil {
			continue
		}
		if metadata, ok := object["metadata"].(map[string]any); ok && metadata["namespace"] == nil {
			metadata["namespace"] = "case"
		}
		text, err := json.Marshal(filled(object, pair))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, fmt.Sprintf("%03d.json", i), text)
	}
	args := []string{"lint", "-f", ".", "-o", "json", "--ignore", leftToFixture}
	if len(c.ControllerConfig) > 0 {
		args = append(args, "--configmap", "options/options")
	}
	out := command(args)
	var result struct {
		Findings []struct{ Severity, Field, Code, Message string }
	}
	// Behind it is what the command prints besides.
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&result); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	seen := map[string]bool{}
	for _, f := range result.Findings {
		if f.Severity == "error" {
			seen[strings.TrimSpace(f.Code+" "+strings.TrimPrefix(f.Field, "nginx.ingress.kubernetes.io/"))] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// serviceOf is a Service of the fixture with an endpoint.
func serviceOf(name string, of recordedPorts) []map[string]any {
	ports := of.Ports
	if len(ports) == 0 {
		ports = []map[string]any{{"name": "http", "port": 80}}
	}
	var service, slice []map[string]any
	for _, p := range ports {
		one := map[string]any{"port": p["port"]}
		if p["name"] != nil {
			one["name"] = p["name"]
		}
		service, slice = append(service, one), append(slice, map[string]any{"name": p["name"], "port": 8080})
	}
	return []map[string]any{
		{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name}, "spec": map[string]any{"ports": service}},
		{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": slice,
			"metadata":  map[string]any{"name": name, "labels": map[string]any{"kubernetes.io/service-name": name}},
			"endpoints": []map[string]any{{"addresses": []string{"10.250.0.9"}}},
		},
	}
}
