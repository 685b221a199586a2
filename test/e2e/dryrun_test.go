package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// definitions are the files of modules that define the kinds which Kubernetes does not have.
var definitions = []struct {
	module, sum string
	files       []string
}{
	{"github.com/cert-manager/cert-manager@v1.20.2", "h1:CimnY00nLqB2lmxhoSuEC4GDMFDK7JCXqyjwMM9ndIQ=", []string{
		"deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_issuers.yaml",
	}},
	{"github.com/kedacore/keda/v2@v2.19.0", "h1:IP3iMTwr9HkaAwPtLnhngPv74LghMf7ubLrsGLQo52M=", []string{
		"config/crd/bases/keda.sh_scaledobjects.yaml",
	}},
	{"github.com/prometheus-operator/prometheus-operator@v0.85.0", "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=", []string{
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
	}},
}

// The API server accepts each object that the chart makes with the values files of its tests,
// without unknown fields. It keeps none of them.
func TestChartObjects(t *testing.T) {
	h := newHeadgate(t)
	h.define()
	helm := filepath.Join(t.TempDir(), "helm")
	linkHelm(t, helm)
	archives, err := filepath.Glob(filepath.Join(charts, "test/testdata/*.txtar"))
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	client := h.validator()
	version := must[*version.Info](h)(h.cluster.Client().Discovery().ServerVersion())
	for _, file := range archives {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sections := map[string]string{"release": "headgate ingress"}
		for _, f := range archive.Files {
			sections[f.Name] = string(f.Data)
		}
		if sections["error"] != "" {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			documents := template(t, helm, strings.Fields(sections["release"]), sections["values.yaml"], version.GitVersion)
			if len(documents) < 3 {
				t.Errorf("there are %d objects only", len(documents))
			}
			for _, document := range documents {
				if err := client.accepts(t.Context(), document); err != nil {
					t.Errorf("%v:\n%s", err, document)
				}
			}
		})
	}
}

// template is what helm would send to the API server, Jobs included.
func template(t *testing.T, helm string, release []string, values, version string) (documents []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), helm, "template", release[0], filepath.Join(charts, "headgate"), "--namespace", release[1], "--values", file, "--kube-version", version)
	c.Env = append(os.Environ(), "HOME="+t.TempDir())
	var errs bytes.Buffer
	c.Stderr = &errs
	output, err := c.Output()
	if err != nil {
		t.Fatalf("helm template: %v: %s", err, errs.String())
	}
	for document := range strings.SplitSeq("\n"+string(output), "\n---\n") {
		if strings.Contains(document, "\nkind: ") {
			documents = append(documents, document)
		}
	}
	return documents
}

// A validator has the API server check objects.
type validator struct {
	client    *dynamic.DynamicClient
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	namespace string
}

func (h *headgate) validator() validator {
	h.t.Helper()
	return validator{
		client:    must[*dynamic.DynamicClient](h)(dynamic.NewForConfig(h.cluster.Config())),
		mapper:    restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(h.cluster.Client().Discovery())),
		namespace: h.class,
	}
}

// accepts is nil if the API server accepts an object. Objects with a namespace are checked in
// that of the test: others would have to exist.
func (v validator) accepts(ctx context.Context, document string) error {
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
		return err
	}
	mapping, err := v.mapper.RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
	if err != nil {
		return err
	}
	namespace := ""
	if object.GetNamespace() != "" {
		namespace = v.namespace
		object.SetNamespace(namespace)
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	yes := true
	_, err = v.client.Resource(mapping.Resource).Namespace(namespace).Patch(ctx, object.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
		DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict, FieldManager: "test", Force: &yes,
	})
	return err
}

// define defines the kinds that Kubernetes does not have, until the end of the test.
func (h *headgate) define() {
	h.t.Helper()
	client := must[*dynamic.DynamicClient](h)(dynamic.NewForConfig(h.cluster.Config())).Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	for _, d := range definitions {
		folder := h.module(d.module, d.sum)
		for _, file := range d.files {
			text := must[[]byte](h)(os.ReadFile(filepath.Join(folder, file)))
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(text, &object.Object); err != nil {
				h.t.Fatal(err)
			}
			must[*unstructured.Unstructured](h)(client.Create(h.t.Context(), object, metav1.CreateOptions{}))
			h.t.Cleanup(func() { _ = client.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}) })
			clustertest.Eventually(h.t, timeout, func(ctx context.Context) error {
				now, err := client.Get(ctx, object.GetName(), metav1.GetOptions{})
				if err != nil {
					return err
				}
				conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
				for _, c := range conditions {
					if c, ok := c.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
						return nil
					}
				}
				return fmt.Errorf("%s is not established: %v", object.GetName(), conditions)
			})
		}
	}
}

// module is the folder of a Go module with a hash.
func (h *headgate) module(name, sum string) string {
	h.t.Helper()
	c := exec.CommandContext(h.t.Context(), "go", "mod", "download", "-json", name)
	c.Dir = h.t.TempDir()
	output, err := c.Output()
	var found struct{ Dir, Sum, Error string }
	if json.Unmarshal(output, &found) != nil || err != nil {
		h.t.Fatalf("downloading %s: %v: %s", name, err, output)
	}
	if found.Sum != sum {
		h.t.Fatalf("%s has the hash %s, want %s", name, found.Sum, sum)
	}
	return found.Dir
}
