package chart_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// TestPortsDiffer: no Service and no container has two ports of one number, not even in two
// protocols, but for TCP and UDP services that the values name. Helm updates these lists by
// their numbers alone, and would lose one of the two.
func TestPortsDiffer(t *testing.T) {
	c, list := load(t), bases(t)
	// The values have the right types, and parsing the schema takes most of the time.
	c.Schema = nil
	for _, b := range list {
		values := with(b.values, []string{"controller", "config", "use-http3"}, "true")
		got, err := render(c, b.release, values)
		if err != nil {
			t.Fatal(err)
		}
		for key, object := range got.objects {
			for _, port := range repeated(object) {
				if !named(values, "tcp", port) && !named(values, "udp", port) {
					t.Errorf("%s: %s has two ports %s", b.name, key, port)
				}
			}
		}
	}
}

// named reports whether the values have a TCP or UDP service with this port.
func named(values map[string]any, protocol, port string) bool {
	services, _ := values[protocol].(map[string]any)
	return services[port] != nil
}

// repeated are the numbers that a Service, or a container of an object's pods, has more than once.
func repeated(object *unstructured.Unstructured) []string {
	if object.GetKind() == "Service" {
		ports, _, _ := unstructured.NestedSlice(object.Object, "spec", "ports")
		return twice(ports, "port")
	}
	var list []string
	containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	for _, container := range containers {
		ports, _, _ := unstructured.NestedSlice(container.(map[string]any), "ports")
		list = append(list, twice(ports, "containerPort")...)
	}
	return list
}

// TestContainerNames: containers have valid names with a long name of a release too.
func TestContainerNames(t *testing.T) {
	c, list := load(t), bases(t)
	// The values have the right types, and parsing the schema takes most of the time.
	c.Schema = nil
	for _, b := range list {
		b.release.name = strings.Repeat("a", 40)
		got, err := render(c, b.release, b.values)
		if err != nil {
			t.Fatal(err)
		}
		for key, object := range got.objects {
			containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			for _, container := range containers {
				name := container.(map[string]any)["name"].(string)
				if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
					t.Errorf("%s: container %s: %s", key, name, errs)
				}
			}
		}
	}
}

func twice(ports []any, field string) []string {
	var list []string
	seen := map[string]bool{}
	for _, port := range ports {
		number := fmt.Sprint(port.(map[string]any)[field])
		if seen[number] {
			list = append(list, number)
		}
		seen[number] = true
	}
	return list
}
