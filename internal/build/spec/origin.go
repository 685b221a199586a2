package spec

import (
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/model"
)

// OldestFirst orders Ingresses by who wins a conflict.
func OldestFirst(ingresses []*networkingv1.Ingress) []*networkingv1.Ingress {
	sorted := slices.Clone(ingresses)
	slices.SortFunc(sorted, CompareAge)
	return sorted
}

// CompareAge puts the Ingress first that wins a conflict.
func CompareAge(a, b *networkingv1.Ingress) int { return Origin(a).CompareAge(Origin(b)) }

// ObjectName is the Ingress's name in findings.
func ObjectName(ing *networkingv1.Ingress) string { return "ingress/" + ing.Namespace + "/" + ing.Name }

// OriginName is the name in findings of the Ingress that something comes from.
func OriginName(o model.Origin) string { return "ingress/" + o.Namespace + "/" + o.Ingress }

// Origin says of what comes from the Ingress where it comes from.
func Origin(ing *networkingv1.Ingress) model.Origin {
	return model.Origin{Namespace: ing.Namespace, Ingress: ing.Name, Created: ing.CreationTimestamp.Time}
}
