// Package store holds the newest object of each name, and the indexes that
// answer what a change touches.
//
// It knows which objects matter to us (the Ingress class) and what refers to
// what (build.Refer); what objects mean it leaves to build. It can't tell
// where they came from. The cost of a change is what the change touches.
package store

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
)

// A Kind is a kind of unit that a change can touch.
type Kind int

// The kinds.
const (
	GlobalsUnit Kind = iota
	BackendUnit
	HostUnit
	NameUnit
	NamePatternsUnit
)

func (k Kind) String() string {
	return [...]string{"globals", "backend", "host", "name", "patterns"}[k]
}

// A Key names a unit to build anew. The unit may be gone: build says so.
type Key struct {
	Kind Kind
	// Name is the host, the name or the backend's key; empty for the globals
	// and the name patterns.
	Name string
}

// Settings say which objects are ours.
type Settings struct {
	// IngressClass is the value of the annotation kubernetes.io/ingress.class
	// by which an Ingress without spec.ingressClassName is ours.
	IngressClass string
	// ControllerClass is the spec.controller of our IngressClasses.
	ControllerClass string
	// ClassByName makes the IngressClass named IngressClass ours, whatever its
	// controller.
	ClassByName bool
	// Namespaces selects, by their labels, the namespaces whose Ingresses are
	// ours; nil for all.
	Namespaces labels.Selector
	// NoCatchAll leaves Ingresses with a spec.defaultBackend out.
	NoCatchAll bool
	// WatchWithoutClass takes Ingresses that name no class.
	WatchWithoutClass bool
	// Classless is for a folder without IngressClasses: besides Ingresses that
	// name no class, those of the class named IngressClass are ours as long as
	// there is no IngressClass object of that name.
	Classless bool
	// DefaultBackend is the Service that answers what no rule does; empty for
	// none.
	DefaultBackend types.NamespacedName
	// NoExternalNames leaves Services of type ExternalName without endpoints.
	NoExternalNames bool
	// ConfigMap names the one with Headgate's options; empty for none.
	ConfigMap types.NamespacedName
}

// A Store holds objects. They must not be changed once they were applied. A
// Store is used by one goroutine.
type Store struct {
	settings Settings
	refer    func(*networkingv1.Ingress) build.References
	changes  uint64

	ingresses map[types.NamespacedName]*ingress
	classes   map[string]*networkingv1.IngressClass
	// selected are the namespaces whose Ingresses are ours, where not all are.
	selected  map[string]bool
	services  map[types.NamespacedName]*corev1.Service
	slices    map[types.NamespacedName]*discoveryv1.EndpointSlice
	secrets   map[types.NamespacedName]*corev1.Secret
	addresses map[string]*source.Addresses // of DNS names
	configMap *corev1.ConfigMap
	// zone is that of the only Node that is delivered: Headgate's own.
	zone string

	// Of Ingresses that are ours:
	byHost        index[string, *ingress]
	byAlias       index[string, *ingress]
	bySecret      index[types.NamespacedName, *ingress]
	backends      index[types.NamespacedName, reference] // of a Service
	wantedSecrets demand[types.NamespacedName]
	wantedNames   demand[string]
	// Of all:
	byClass        index[string, *ingress]
	byExternalName index[string, types.NamespacedName]                     // Services
	slicesOfTarget index[types.NamespacedName, *discoveryv1.EndpointSlice] // of a Service
}

var _ build.View = (*Store)(nil)

// New makes an empty Store. Refer lists what an Ingress names (build.Refer).
func New(settings Settings, refer func(*networkingv1.Ingress) build.References) *Store {
	return &Store{
		settings:       settings,
		refer:          refer,
		ingresses:      map[types.NamespacedName]*ingress{},
		classes:        map[string]*networkingv1.IngressClass{},
		selected:       map[string]bool{},
		services:       map[types.NamespacedName]*corev1.Service{},
		slices:         map[types.NamespacedName]*discoveryv1.EndpointSlice{},
		secrets:        map[types.NamespacedName]*corev1.Secret{},
		byHost:         index[string, *ingress]{},
		byAlias:        index[string, *ingress]{},
		bySecret:       index[types.NamespacedName, *ingress]{},
		wantedSecrets:  newDemand[types.NamespacedName](),
		wantedNames:    newDemand[string](),
		backends:       index[types.NamespacedName, reference]{},
		byClass:        index[string, *ingress]{},
		byExternalName: index[string, types.NamespacedName]{},
		addresses:      map[string]*source.Addresses{},
		slicesOfTarget: index[types.NamespacedName, *discoveryv1.EndpointSlice]{},
	}
}

// Apply takes a new version of an object, or its deletion, for which the
// object's type, namespace and name suffice. It returns the units that this
// touches, sorted and without duplicates: none if nothing changed that anyone
// reads. Kinds that nobody reads are passed over.
func (s *Store) Apply(object metav1.Object, deleted bool) []Key {
	s.changes++
	var touched []Key
	switch o := object.(type) {
	case *networkingv1.Ingress:
		touched = s.applyIngress(o, deleted)
	case *networkingv1.IngressClass:
		touched = s.applyClass(o, deleted)
	case *corev1.Namespace:
		touched = s.applyNamespace(o, deleted)
	case *corev1.Service:
		touched = s.applyService(o, deleted)
	case *discoveryv1.EndpointSlice:
		touched = s.applySlice(o, deleted)
	case *corev1.Secret:
		touched = s.applySecret(o, deleted)
	case *corev1.Node:
		touched = s.applyNode(o, deleted)
	case *source.Addresses:
		touched = s.applyAddresses(o, deleted)
	case *corev1.ConfigMap:
		touched = s.applyConfigMap(o, deleted)
	}
	return sortKeys(touched)
}

// All are the keys of all units, for the first load.
func (s *Store) All() []Key {
	keys := make([]Key, 0, 2*len(s.byHost)+len(s.backends)+3)
	keys = append(keys, Key{Kind: GlobalsUnit}, Key{Kind: NamePatternsUnit})
	for alias := range s.byAlias {
		keys = append(keys, aliasKey(alias))
	}
	for host := range s.byHost {
		keys = append(keys, Key{HostUnit, host}, Key{NameUnit, host})
	}
	keys = append(keys, Key{HostUnit, model.DefaultHost}, Key{NameUnit, model.DefaultHost})
	return sortKeys(s.appendAllBackends(keys))
}

func sortKeys(keys []Key) []Key {
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(keys)
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// put replaces the object of that name, or deletes it, and returns the one
// that was there, nil if none was.
func put[K comparable, O any](objects map[K]*O, name K, object *O, deleted bool) (was *O) {
	was = objects[name]
	if deleted {
		delete(objects, name)
	} else {
		objects[name] = object
	}
	return was
}
