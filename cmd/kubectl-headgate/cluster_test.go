package main

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// A fakeCluster is an API server with fixed objects, which can be read and listed.
type fakeCluster struct {
	objects []unstructured.Unstructured
	// log is the log of each container.
	log string
	// requests are those that it got, with their queries.
	requests []*http.Request
}

// readObjects reads documents of YAML.
func readObjects(t *testing.T, text []byte) []unstructured.Unstructured {
	t.Helper()
	var objects []unstructured.Unstructured
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, o)
	}
	return objects
}

// start serves the cluster and returns the path of a kubeconfig.
func (c *fakeCluster) start(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(c)
	t.Cleanup(server.Close)
	authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	config := `{"apiVersion": "v1", "kind": "Config", "current-context": "test",
  "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}, {"name": "other", "context": {"cluster": "none"}}],
  "clusters": [{"name": "test", "cluster": {"server": "` + server.URL + `", "certificate-authority-data": "` + authority + `"}}],
  "users": [{"name": "test", "user": {"token": "secret"}}]}`
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// kinds are those of the resources that the plugin reads.
var kinds = map[string]string{
	"pods": "Pod", "services": "Service", "namespaces": "Namespace", "deployments": "Deployment", "daemonsets": "DaemonSet",
	"ingresses": "Ingress", "endpointslices": "EndpointSlice",
}

func (c *fakeCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.requests = append(c.requests, r)
	// /api/v1/… or /apis/GROUP/VERSION/…
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	version, parts := parts[1], parts[2:]
	if strings.HasPrefix(r.URL.Path, "/apis/") {
		version, parts = version+"/"+parts[0], parts[1:]
	}
	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1], parts[2:]
	}
	if len(parts) == 3 && parts[2] == "log" {
		_, _ = w.Write([]byte(c.log))
		return
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	kind := kinds[parts[0]]
	found := slices.DeleteFunc(slices.Clone(c.objects), func(o unstructured.Unstructured) bool {
		return o.GetAPIVersion() != version || o.GetKind() != kind || namespace != "" && o.GetNamespace() != namespace ||
			!selector.Matches(labels.Set(o.GetLabels())) || len(parts) == 2 && o.GetName() != parts[1]
	})
	w.Header().Set("Content-Type", "application/json")
	switch {
	case len(parts) == 1:
		items := []any{}
		for _, o := range found {
			items = append(items, o.Object)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": version, "kind": kind + "List", "items": items})
	case len(found) == 1:
		_ = json.NewEncoder(w).Encode(found[0].Object)
	default:
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound,
			"message": parts[0] + " not found",
		})
	}
}
