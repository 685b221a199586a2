package lint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/model"
)

// fieldOf returns the first field of an Ingress that names a backend.
func fieldOf(ing *networkingv1.Ingress, backend string) string {
	names := func(b *networkingv1.IngressBackend) bool {
		if b == nil || b.Service == nil {
			return false
		}
		port := b.Service.Port.Name
		if port == "" {
			port = strconv.Itoa(int(b.Service.Port.Number))
		}
		return model.BackendKey(ing.Namespace, b.Service.Name, port) == backend
	}
	if names(ing.Spec.DefaultBackend) {
		return "spec.defaultBackend.service"
	}
	for i, rule := range ing.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for j := range rule.HTTP.Paths {
			if names(&rule.HTTP.Paths[j].Backend) {
				return fmt.Sprintf("spec.rules[%d].http.paths[%d].backend.service", i, j)
			}
		}
	}
	ours := maps.Clone(ing.Annotations)
	maps.DeleteFunc(ours, func(name, _ string) bool { return !strings.Contains(name, "/") })
	return fieldNaming(ours, backend)
}

// fieldNaming returns the first field whose value is the name of the backend's
// Service, or a URL with its name in the cluster, or empty.
func fieldNaming(values map[string]string, backend string) string {
	service, _, _ := spec.SplitKey(backend)
	inCluster := service.Name + "." + service.Namespace + ".svc"
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if value := strings.TrimSpace(values[name]); value == service.Name || strings.Contains(value, "://"+inCluster) {
			return name
		}
	}
	return ""
}
