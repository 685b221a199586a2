package lint

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/unit"
)

// addOwn adds the findings about manifests that a cluster never has: the controller
// accepts them, or an API server rejects them.
func (c *checker) addOwn() {
	for _, change := range c.changes {
		ing, ok := change.Object.(*networkingv1.Ingress)
		if !ok || !c.snap.View.Serves(types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}) {
			continue
		}
		for _, f := range finding.Limit(pathTypes(ing)) {
			c.addFinding(unit.Key{}, f)
		}
	}
}

// pathTypes are the findings for paths without a pathType.
func pathTypes(ing *networkingv1.Ingress) []finding.Finding {
	var fs []finding.Finding
	for i, rule := range ing.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for j, path := range rule.HTTP.Paths {
			if path.PathType == nil {
				fs = append(fs, finding.Finding{
					Object: spec.ObjectName(ing), Field: fmt.Sprintf("spec.rules[%d].http.paths[%d].pathType", i, j), Code: finding.MissingField,
					Message: "pathType is missing: must be Exact, Prefix or ImplementationSpecific",
					Effect:  "a cluster rejects the Ingress; from a folder the path is served as Prefix",
				})
			}
		}
	}
	return fs
}
