package spec

import (
	"cmp"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/memo"
	"github.com/headgate/headgate/internal/model"
)

// RulesByHost are an Ingress's rules by the host that they are for.
type RulesByHost struct {
	ByHost  map[string][]int
	Invalid []int
	// First is the host that comes first in the alphabet.
	First string
}

func listRules(ing *networkingv1.Ingress) RulesByHost {
	list := RulesByHost{ByHost: map[string][]int{}}
	for i, rule := range ing.Spec.Rules {
		host, ok := HostName(rule.Host)
		if !ok {
			list.Invalid = append(list.Invalid, i)
			continue
		}
		list.ByHost[host] = append(list.ByHost[host], i)
		if list.First == "" || host < list.First {
			list.First = host
		}
	}
	// An Ingress without rules names the default host by spec.defaultBackend.
	list.First = cmp.Or(list.First, model.DefaultHost)
	return list
}

const (
	// FewRules are listed again for each host.
	FewRules = 8
	// maxListed is how many Ingresses' rules are remembered.
	maxListed = 10_000
)

// A RulesMemo remembers the rules of Ingresses with many: each of their hosts
// would go through all of them.
type RulesMemo struct {
	lists memo.Map[types.NamespacedName, *networkingv1.Ingress, RulesByHost]
}

// Of lists the rules of an Ingress.
func (m *RulesMemo) Of(ing *networkingv1.Ingress) RulesByHost {
	if len(ing.Spec.Rules) <= FewRules {
		return listRules(ing)
	}
	m.lists.Most = maxListed
	return m.lists.Get(types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}, ing, listRules)
}
