// Package chart_test renders the Helm chart. It is a module of its own, so that Helm's
// dependencies stay out of Headgate's.
package chart_test

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/pmezard/go-difflib/difflib"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const folder = "../headgate"

var update = flag.Bool("update", false, "rewrite values.schema.json and the expected results in testdata")

// TestLint: Helm has nothing to say about the chart.
func TestLint(t *testing.T) {
	for _, message := range lint.All(folder, nil, "ingress", true).Messages {
		// Charts may have an icon, in catalogues.
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
}

// A release is an installation of the chart.
type release struct{ name, namespace string }

// rendered is what Helm would send to the API server, and print.
type rendered struct {
	objects map[string]*unstructured.Unstructured // by kind and name
	text    map[string]string                     // of each object
	notes   string
}

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		c.Schema = schemaFile(t)
	}
	return c
}

// files renders the chart's templates.
func files(c *chart.Chart, r release, values map[string]any) (map[string]string, error) {
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: r.name, Namespace: r.namespace, Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// render renders the chart, and parses the objects.
func render(c *chart.Chart, r release, values map[string]any) (rendered, error) {
	files, err := files(c, r, values)
	if err != nil {
		return rendered{}, err
	}
	result := rendered{objects: map[string]*unstructured.Unstructured{}, text: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch path.Ext(name) {
		case ".txt":
			result.notes = strings.TrimSpace(files[name]) + "\n"
		case ".yaml":
			if err := result.add(files[name]); err != nil {
				return rendered{}, fmt.Errorf("%s: %w\n%s", path.Base(name), err, files[name])
			}
		}
	}
	return result, nil
}

// add adds the objects of a file.
func (r *rendered) add(file string) error {
	for document := range strings.SplitSeq("\n"+file, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		object, err := decode(document)
		if err != nil {
			return err
		}
		key := object.GetKind() + " " + strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/")
		if r.objects[key] != nil {
			return fmt.Errorf("%s is rendered twice", key)
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return err
		}
		r.objects[key], r.text[key] = object, string(text)
	}
	return nil
}

// foreign are the kinds that Kubernetes does not have.
var foreign = []string{
	"cert-manager.io/v1 Certificate", "cert-manager.io/v1 Issuer", "keda.sh/v1alpha1 ScaledObject",
	"monitoring.coreos.com/v1 PrometheusRule", "monitoring.coreos.com/v1 ServiceMonitor",
}

// decode parses an object as API servers do with fieldValidation=Strict.
func decode(document string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
		return nil, err
	}
	if object.GetName() == "" {
		return nil, fmt.Errorf("metadata.name is missing")
	}
	kind := object.GetAPIVersion() + " " + object.GetKind()
	if slices.Contains(foreign, kind) {
		return object, nil
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	typed, _, err := decoder.Decode([]byte(document), nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	if _, ok := typed.(metav1.Object); !ok {
		return nil, fmt.Errorf("%s is not an object", kind)
	}
	return object, nil
}

// changes prints the objects that another rendering does not have, what differs in those that it has,
// and the names of those that are missing.
func (r rendered) changes(t *testing.T, from rendered) string {
	t.Helper()
	var b bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(from.text)) {
		if r.text[key] == "" {
			fmt.Fprintf(&b, "# without %s\n", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(r.text)) {
		if from.text[key] == "" {
			fmt.Fprintf(&b, "---\n%s", r.text[key])
			continue
		}
		unified := difflib.UnifiedDiff{
			A: lines(from.text[key]), B: lines(r.text[key]), Context: 2, FromFile: "defaults", ToFile: key,
		}
		diff, err := difflib.GetUnifiedDiffString(unified)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(diff)
	}
	return b.String()
}

// with returns values with one more, at a path.
func with(values map[string]any, at []string, value any) map[string]any {
	result := maps.Clone(values)
	if result == nil {
		result = map[string]any{}
	}
	if len(at) == 1 {
		result[at[0]] = value
		return result
	}
	below, _ := result[at[0]].(map[string]any)
	result[at[0]] = with(below, at[1:], value)
	return result
}

func lines(text string) []string { return difflib.SplitLines(strings.TrimSuffix(text, "\n")) }
