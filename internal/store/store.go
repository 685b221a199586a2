// Package store holds the newest version of each object, and the indexes that
// find the units that a change touches.
//
// It knows which Ingresses are ours (by their class) and the references of
// objects (build.Refer), but neither their meaning nor their source. The cost of
// a change depends on the number of units that it touches.
package store

import (
	"net/netip"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/unit"
)

// Settings define which objects are ours.
type Settings struct {
	// IngressClass is the value of the annotation kubernetes.io/ingress.class
	// by which an Ingress without spec.ingressClassName is ours.
	IngressClass string
	// ControllerClass is the spec.controller of our IngressClasses.
	ControllerClass string
	// ClassByName makes the IngressClass named IngressClass ours, for any
	// controller.
	ClassByName bool
	// OwnHosts gives a name to one namespace, also where the options say something else.
	OwnHosts bool
	// Namespaces selects, by their labels, the namespaces whose Ingresses are
	// ours; nil for all.
	Namespaces labels.Selector
	// Scope defines which Ingresses are excluded because of their content.
	Scope spec.Scope
	// WatchWithoutClass makes Ingresses that name no class ours.
	WatchWithoutClass bool
	// Classless is for a folder without IngressClasses: besides Ingresses that
	// name no class, those of the class named IngressClass are ours as long as
	// there is no IngressClass object of that name.
	Classless bool
	// DefaultBackend is the Service for requests that match no rule; empty for
	// none.
	DefaultBackend types.NamespacedName
	// DefaultCertificate is the Secret with the certificate of names without one
	// of their own; empty for none.
	DefaultCertificate types.NamespacedName
	// NoExternalNames leaves Services of type ExternalName without endpoints.
	NoExternalNames bool
	// LocalAddresses allows backends of tenants with guard.IsLocal addresses, and
	// with the Listeners.
	LocalAddresses bool
	// Listeners are the addresses at which this instance is reached.
	Listeners []netip.AddrPort
	// ManualEndpoints is for a folder, where no controller writes EndpointSlices
	// for Services.
	ManualEndpoints bool
	// CompleteChains requests the issuers' certificates that the certificates in
	// Secrets name.
	CompleteChains bool
	// Passthrough lets TLS connections of hosts be passed through to backends.
	Passthrough bool
	// ConfigMap is the one with Headgate's options; empty for none.
	ConfigMap types.NamespacedName
	// TCPServices and UDPServices are the ConfigMaps with TCP and UDP services; empty for
	// none. ReservedPorts are the ports that Headgate itself uses, with what for.
	TCPServices, UDPServices types.NamespacedName
	// Template is the administrator's template of nginx.conf at the start; nil if there is none.
	Template      *source.Template
	ReservedPorts map[uint16]string
}

// A Store holds objects. They must not be changed after Apply. A Store is used by
// one goroutine.
type Store struct {
	settings Settings
	refer    Refer
	changes  uint64

	ingresses map[types.NamespacedName]*ingress
	classes   map[string]*networkingv1.IngressClass
	// selected are the namespaces whose Ingresses are ours, if not all are.
	selected  sets.Set[string]
	services  map[types.NamespacedName]*corev1.Service
	slices    map[types.NamespacedName]*discoveryv1.EndpointSlice
	secrets   map[types.NamespacedName]*corev1.Secret
	addresses map[string]*source.Addresses // of DNS names
	health    map[string]*source.Health    // of backends
	// configMaps are all that were delivered.
	configMaps    map[types.NamespacedName]*corev1.ConfigMap
	issuers       map[string]*source.Issuers // of URLs
	ocspResponses map[string]*source.OCSPResponse
	geoDatabases  map[string]*source.GeoDatabase // of editions
	template      *source.Template
	// zone is that of the only Node that is delivered: Headgate's own.
	zone string

	// moved are the Ingresses that DrainIngresses returns.
	moved sets.Set[types.NamespacedName]

	// Of Ingresses that are ours:
	byHost          index[string, *ingress]
	byAlias         index[string, *ingress]
	byRedirectAlias index[string, *ingress]
	bySecret        index[types.NamespacedName, *ingress] // of spec.tls
	byObject        index[feature.Reference, *ingress]
	backends        index[types.NamespacedName, reference] // of a Service
	// below has the names below each wildcard, each once.
	below index[string, string]
	// streams are the keys of TCP and UDP services, by their Services.
	streams index[types.NamespacedName, unit.Key]
	// optionCalls are the backends that the ConfigMap with the options calls.
	optionCalls []spec.BackendReference
	// optionObjects are the objects that the ConfigMap with the options refers to.
	optionObjects []feature.Reference
	// ownHosts is set if a name belongs to one namespace.
	ownHosts      bool
	wantedSecrets wantSet[types.NamespacedName]
	// wantedConfigMaps does not have the one with Headgate's options.
	wantedConfigMaps wantSet[types.NamespacedName]
	wantedNames      wantSet[string]
	wantedIssuers    wantSet[string]
	// Of all:
	byClass        index[string, *ingress]
	byExternalName index[string, types.NamespacedName]                     // Services
	slicesOfTarget index[types.NamespacedName, *discoveryv1.EndpointSlice] // of a Service
	byIssuerURL    index[string, types.NamespacedName]                     // Secrets
	// issuerURLs has the URL of each Secret in byIssuerURL.
	issuerURLs map[types.NamespacedName]string
}

// Refer returns the references of an Ingress or, without one, of the ConfigMap
// with the options (build.Refer).
type Refer func(ing *networkingv1.Ingress, options *corev1.ConfigMap) spec.References

// New makes an empty Store.
func New(settings Settings, refer Refer) *Store {
	s := &Store{
		settings:      settings,
		refer:         refer,
		template:      settings.Template,
		ownHosts:      settings.OwnHosts,
		ingresses:     map[types.NamespacedName]*ingress{},
		classes:       map[string]*networkingv1.IngressClass{},
		selected:      sets.Set[string]{},
		moved:         sets.Set[types.NamespacedName]{},
		services:      map[types.NamespacedName]*corev1.Service{},
		slices:        map[types.NamespacedName]*discoveryv1.EndpointSlice{},
		secrets:       map[types.NamespacedName]*corev1.Secret{},
		configMaps:    map[types.NamespacedName]*corev1.ConfigMap{},
		issuers:       map[string]*source.Issuers{},
		ocspResponses: map[string]*source.OCSPResponse{},
		geoDatabases:  map[string]*source.GeoDatabase{},
		issuerURLs:    map[types.NamespacedName]string{},
		addresses:     map[string]*source.Addresses{},
		health:        map[string]*source.Health{},
	}
	s.wantedSecrets.markDirty(settings.DefaultCertificate)
	s.applyOptions()
	return s
}

// Apply applies a new version of an object, or its deletion, which needs only the
// object's type, namespace and name. It returns the units that this touches,
// sorted and without duplicates: none if it is the same version, or an Ingress of
// which no field that is read changed. Other kinds are ignored.
func (s *Store) Apply(object metav1.Object, deleted bool) []unit.Key {
	s.changes++
	var touched []unit.Key
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
	case *source.Health:
		touched = s.applyHealth(o, deleted)
	case *source.Issuers:
		touched = s.applyIssuers(o, deleted)
	case *source.OCSPResponse:
		touched = s.applyOCSPResponse(o, deleted)
	case *source.GeoDatabase:
		touched = s.applyGeoDatabase(o, deleted)
	case *corev1.ConfigMap:
		touched = s.applyConfigMap(o, deleted)
	case *source.Template:
		touched = s.applyTemplate(o, deleted)
	}
	return sortKeys(touched)
}

// All are the keys of all units, for the first load.
func (s *Store) All() []unit.Key {
	keys := make([]unit.Key, 0, 2*len(s.byHost)+len(s.backends)+5)
	keys = append(keys, unit.GlobalsKey, unit.PatternsKey, unit.DefaultCertificateKey)
	for name, ing := range s.ingresses {
		if ing.refused {
			keys = append(keys, refusalKey(name))
		}
	}
	for alias := range s.byAlias {
		keys = append(keys, aliasKey(alias))
	}
	for alias := range s.byRedirectAlias {
		keys = append(keys, unit.Name.Key(alias))
	}
	for host := range s.byHost {
		keys = append(keys, unit.Host.Key(host), unit.Name.Key(host))
	}
	keys = append(keys, unit.Host.Key(model.DefaultHost), unit.Name.Key(model.DefaultHost))
	return sortKeys(s.appendAllBackends(keys))
}

func sortKeys(keys []unit.Key) []unit.Key {
	slices.SortFunc(keys, unit.Key.Compare)
	return slices.Compact(keys)
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// put replaces or deletes the object of that name. It returns the previous one,
// nil if there was none.
func put[K comparable, O any](objects map[K]*O, name K, object *O, deleted bool) (was *O, changed bool) {
	was = objects[name]
	if deleted {
		delete(objects, name)
		return was, was != nil
	}
	objects[name] = object
	return was, !reflect.DeepEqual(was, object)
}
