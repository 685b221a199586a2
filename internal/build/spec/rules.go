package spec

import (
	"cmp"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

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
	// maxRules is how many rules are remembered, of all Ingresses together.
	maxRules = 100_000
)

// A RulesMemo remembers the rules of Ingresses with many: each of their hosts
// would go through all of them.
type RulesMemo struct {
	lists map[types.NamespacedName]knownRules
	rules int
}

type knownRules struct {
	of   *networkingv1.Ingress
	list RulesByHost
}

// Of lists the rules of an Ingress.
func (m *RulesMemo) Of(ing *networkingv1.Ingress) RulesByHost {
	n := len(ing.Spec.Rules)
	if n <= FewRules {
		return listRules(ing)
	}
	name := types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}
	list, known := m.lists[name]
	if known && list.of == ing {
		return list.list
	}
	if known {
		m.rules -= len(list.of.Spec.Rules)
	}
	if m.lists == nil || m.rules+n > maxRules {
		m.lists, m.rules = map[types.NamespacedName]knownRules{}, 0
	}
	list = knownRules{ing, listRules(ing)}
	m.lists[name] = list
	m.rules += n
	return list.list
}
