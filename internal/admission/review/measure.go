package review

import (
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/headgate/headgate/internal/unit"
)

// Measured is what a review took.
type Measured struct {
	// Ingresses is how many Ingresses the hosts have that were built: the one under review
	// and others. Bytes is the size of all units that were built.
	Ingresses, Bytes int
	// Build is how long that took.
	Build time.Duration
}

// A measurement of one build; nil if nothing is measured.
type measurement struct {
	reviewer  *Reviewer
	ingresses sets.Set[types.NamespacedName]
	bytes     int
	began     time.Time
	// packing is not a part of the build.
	packing time.Duration
}

func (r *Reviewer) measure(ing *networkingv1.Ingress) *measurement {
	if !r.settings.Measure {
		return nil
	}
	return &measurement{reviewer: r, ingresses: sets.New(nameOf(ing)), began: time.Now()}
}

func nameOf(ing *networkingv1.Ingress) types.NamespacedName {
	return types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}
}

func (m *measurement) add(built unit.Built) {
	if m == nil {
		return
	}
	began := time.Now()
	if packed, ok := built.Pack(); ok {
		m.bytes += len(packed.Payload)
	}
	if built.Kind == unit.Host {
		for _, ing := range m.reviewer.store.Ingresses(built.Name) {
			m.ingresses.Insert(nameOf(ing))
		}
	}
	m.packing += time.Since(began)
}

func (m *measurement) end() Measured {
	if m == nil {
		return Measured{}
	}
	return Measured{Ingresses: len(m.ingresses), Bytes: m.bytes, Build: time.Since(m.began) - m.packing}
}
