package build

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/finding"
)

// Refusal says why the Ingress of that name, "namespace/name", is left out as a
// whole. Without findings it is not.
func (b *Builder) Refusal(name string, v View) []finding.Finding {
	var of types.NamespacedName
	of.Namespace, of.Name, _ = strings.Cut(name, "/")
	ing := v.Refused(of)
	if ing == nil {
		return nil
	}
	return v.Scope().Findings(ing)
}
