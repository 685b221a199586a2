package review

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
)

// missing are objects that an Ingress refers to, and that the store does not have. Sources
// deliver Secrets and ConfigMaps once an Ingress refers to them: so whether they exist is
// not known.
type missing struct {
	any bool
	// messages are about objects of other namespaces, of which findings say no more.
	messages []string
}

func (r *Reviewer) missing(ing *networkingv1.Ingress) (m missing) {
	references := r.store.References(ing)
	for _, name := range references.Secrets {
		m.any = m.any || r.store.Secret(name) == nil
	}
	for _, ref := range references.Objects {
		name := types.NamespacedName(ref.ObjectName)
		if ref.Kind == feature.Secret && r.store.Secret(name) == nil || ref.Kind == feature.ConfigMap && r.store.NamedConfigMap(name) == nil {
			m.any = true
			m.messages = append(m.messages, feature.Foreign(ref.Kind, ref.ObjectName))
		}
	}
	return m
}

// explain reports whether a finding may be due to objects that are missing.
func (m missing) explain(f finding.Finding) bool {
	if m.any && f.Code == finding.MissingObject {
		return true
	}
	for _, message := range m.messages {
		if f.Code == finding.NotAllowed && f.Message == message {
			return true
		}
	}
	return false
}
