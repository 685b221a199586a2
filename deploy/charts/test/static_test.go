package chart_test

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// static are the manifests in deploy/static, and the values that they are rendered with.
var static = map[string]map[string]any{
	"cloud": {"controller": map[string]any{"service": map[string]any{"externalTrafficPolicy": "Local"}}},
	"baremetal": {"controller": map[string]any{
		"service":        map[string]any{"type": "NodePort"},
		"publishService": map[string]any{"enabled": false},
	}},
	"split": {"controller": map[string]any{
		"mode":          "split",
		"replicaCount":  2,
		"service":       map[string]any{"externalTrafficPolicy": "Local"},
		"networkPolicy": map[string]any{"enabled": true},
	}},
}

// order is that of the kinds in a manifest: what others need comes first.
var order = []string{
	"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ConfigMap", "Service",
	"Deployment", "PodDisruptionBudget", "NetworkPolicy", "IngressClass", "Job", "ValidatingWebhookConfiguration",
}

// TestStatic: the manifests in deploy/static are what the chart renders.
func TestStatic(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(static)) {
		got, err := render(load(t), release{"headgate", "headgate"}, static[name])
		if err != nil {
			t.Fatal(err)
		}
		want := manifest(t, name, got)
		file := filepath.Join(root, "deploy/static", name, "deploy.yaml")
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := os.ReadFile(file); err != nil || !bytes.Equal(text, want) {
			t.Errorf("%s is not what the chart renders (%v); `go test . -update` rewrites it", file, err)
		}
	}
}

// manifest prints objects for kubectl: with their Namespace, and without what is for Helm.
func manifest(t *testing.T, name string, r rendered) []byte {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Written by `go test . -update` in deploy/charts/test: the chart in deploy/charts/headgate, with the values %q.\n", name)
	b.WriteString("apiVersion: v1\nkind: Namespace\nmetadata:\n  labels:\n    pod-security.kubernetes.io/enforce: restricted\n  name: headgate\n")
	objects := slices.SortedFunc(maps.Values(r.objects), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(slices.Index(order, a.GetKind())-slices.Index(order, b.GetKind()), strings.Compare(a.GetName(), b.GetName()))
	})
	for _, object := range objects {
		if !slices.Contains(order, object.GetKind()) {
			t.Errorf("%s has no place in the order", object.GetKind())
		}
		withoutHelm(object.Object)
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "---\n%s", text)
	}
	return b.Bytes()
}

// withoutHelm removes labels and annotations that are for Helm, in templates of pods too.
func withoutHelm(object map[string]any) {
	for key, value := range object {
		below, ok := value.(map[string]any)
		switch {
		case ok:
			withoutHelm(below)
			if key == "annotations" && len(below) == 0 {
				delete(object, key)
			}
		case strings.HasPrefix(key, "helm.sh/"), key == "app.kubernetes.io/managed-by":
			delete(object, key)
		}
	}
}
