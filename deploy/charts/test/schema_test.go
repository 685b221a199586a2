package chart_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// free are values with defaults that may have other keys: objects of Kubernetes, and maps of ports.
var free = []string{
	"containerPort", "hostPort.ports", "lifecycle", "livenessProbe", "nodeSelector", "ports", "readinessProbe", "resources", "seccompProfile", "securityContext", "targetPorts",
}

// words are the values that a name may have.
var words = map[string][]string{
	"kind": {"Deployment", "DaemonSet"}, "failurePolicy": {"Fail", "Ignore"}, "pullPolicy": {"Always", "IfNotPresent", "Never"},
	"externalTrafficPolicy": {"", "Cluster", "Local"}, "internalTrafficPolicy": {"", "Cluster", "Local"}, "sessionAffinity": {"", "None", "ClientIP"},
	"ipFamilyPolicy": {"", "SingleStack", "PreferDualStack", "RequireDualStack"}, "unhealthyPodEvictionPolicy": {"", "IfHealthyBudget", "AlwaysAllow"},
	"type": {"", "ClusterIP", "NodePort", "LoadBalancer"}, "mode": {"all-in-one", "split"},
}

// numbers are values that may be a number as well as text: ports, shares and versions.
var numbers = []string{"maxUnavailable", "minAvailable", "nodePort", "nodePorts.http", "nodePorts.https", "tag"}

// ofGroups are the values of the controller that a group of edges can have in another way.
var ofGroups = []string{
	"affinity", "annotations", "autoscaling", "hostPort", "keda", "kind", "labels", "maxUnavailable", "minAvailable", "nodeSelector", "podAnnotations", "podLabels",
	"priorityClassName", "replicaCount", "resources", "service", "tolerations", "topologySpreadConstraints", "updateStrategy",
}

// groupSchema is the schema of a group of edges, from that of the controller.
func groupSchema(controller map[string]any) map[string]any {
	properties := map[string]any{"name": map[string]any{"type": "string"}, "certificateSecret": map[string]any{"type": "string"}}
	for _, name := range ofGroups {
		properties[name] = controller[name]
	}
	return map[string]any{"type": "object", "properties": properties, "required": []string{"name"}, "additionalProperties": false}
}

// schema makes the schema of a value out of its default.
func schema(at string, value any) map[string]any {
	named := func(list []string) bool {
		return slices.ContainsFunc(list, func(name string) bool { return strings.HasSuffix("."+at, "."+name) })
	}
	name := at[strings.LastIndex(at, ".")+1:]
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 || named(free) {
			return map[string]any{"type": "object"}
		}
		properties := map[string]any{}
		for key, below := range value {
			properties[key] = schema(strings.TrimPrefix(at+"."+key, "."), below)
		}
		switch at {
		case "":
			// Helm sets it if another chart that depends on this one has it as its condition.
			properties["enabled"] = map[string]any{"type": "boolean"}
		case "global", "global.image":
			// Other charts have global values too.
			return map[string]any{"type": "object", "properties": properties}
		}
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	case []any:
		return map[string]any{"type": "array"}
	case bool:
		return map[string]any{"type": "boolean"}
	}
	switch list, ok := words[name]; {
	case ok:
		return map[string]any{"enum": list}
	case named(numbers):
		return map[string]any{"type": []string{"integer", "number", "string"}}
	}
	if _, ok := value.(string); ok {
		return map[string]any{"type": "string"}
	}
	return map[string]any{"type": "integer"}
}

// defaults are the values of the chart.
func defaults(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// schemaFile is the content of values.schema.json.
func schemaFile(t *testing.T) []byte {
	t.Helper()
	s := schema("", defaults(t))
	properties := func(s any) map[string]any { return s.(map[string]any)["properties"].(map[string]any) }
	controller := properties(properties(s)["controller"])
	properties(controller["edge"])["groups"].(map[string]any)["items"] = groupSchema(controller)
	s["$schema"] = "http://json-schema.org/draft-07/schema#"
	s["$comment"] = "Written by `go test . -update` in deploy/charts/test, from values.yaml."
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// TestSchema: values.schema.json is made from values.yaml.
func TestSchema(t *testing.T) {
	want := schemaFile(t)
	file := filepath.Join(folder, "values.schema.json")
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not that of values.yaml (%v); `go test . -update` rewrites it", file, err)
	}
}
