package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
)

// An Unserved is an Ingress that is not ours.
type Unserved struct {
	Ingress *networkingv1.Ingress
	// Why is the reason.
	Why string
}

// Unserved are the Ingresses that are not ours and have a rule for one of the
// hosts, sorted by their names. It goes through all Ingresses: the indexes have
// only ours.
func (s *Store) Unserved(hosts []string) []Unserved {
	return s.unserved(func(ing *ingress) bool {
		return slices.ContainsFunc(ing.object.Spec.Rules, func(r networkingv1.IngressRule) bool {
			return slices.Contains(hosts, strings.ToLower(strings.TrimSuffix(r.Host, ".")))
		})
	})
}

// Foreign are the Ingresses of another class or namespace, sorted by their
// names. It goes through all Ingresses.
func (s *Store) Foreign() []Unserved {
	return s.unserved(func(ing *ingress) bool { return !ing.refused })
}

func (s *Store) unserved(which func(*ingress) bool) []Unserved {
	var list []Unserved
	for _, ing := range s.ingresses {
		if !ing.ours && which(ing) {
			list = append(list, Unserved{ing.object, s.whyNot(ing.object)})
		}
	}
	slices.SortFunc(list, func(a, b Unserved) int {
		return cmp.Or(cmp.Compare(a.Ingress.Namespace, b.Ingress.Namespace), cmp.Compare(a.Ingress.Name, b.Ingress.Name))
	})
	return list
}

// whyNot describes why isOurs is false.
func (s *Store) whyNot(ing *networkingv1.Ingress) string {
	switch {
	case s.settings.Namespaces != nil && !s.selected.Has(ing.Namespace):
		return fmt.Sprintf("--watch-namespace-selector %s does not select its namespace %s", s.settings.Namespaces, ing.Namespace)
	case s.isOurClass(ing):
		return s.settings.Scope.Why(ing)
	}
	if name := ing.Spec.IngressClassName; name != nil {
		class := s.classes[*name]
		if class == nil && s.settings.Classless {
			return fmt.Sprintf("its IngressClass %s does not exist: without this object, only the class %s is served", *name, s.settings.IngressClass)
		}
		if class == nil {
			return fmt.Sprintf("its IngressClass %s does not exist", *name)
		}
		return fmt.Sprintf("its IngressClass %s is for the controller %s, not %s", *name, class.Spec.Controller, s.settings.ControllerClass)
	}
	if name, ok := ing.Annotations[classAnnotation]; ok {
		return fmt.Sprintf("its annotation %s is %q, not %q", classAnnotation, name, s.settings.IngressClass)
	}
	return "it names no class, and --watch-ingress-without-class is not set"
}
