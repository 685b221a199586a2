package lint

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/model"
)

// fieldOf is the first field in which an Ingress names a backend.
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
	return annotationOf(ing, backend)
}

// annotationOf is the annotation whose value is the name of the backend's
// Service, empty if there is none.
func annotationOf(ing *networkingv1.Ingress, backend string) string {
	service, _, _ := build.SplitKey(backend)
	for _, name := range slices.Sorted(maps.Keys(ing.Annotations)) {
		if strings.Contains(name, "/") && strings.TrimSpace(ing.Annotations[name]) == service.Name {
			return name
		}
	}
	return ""
}
