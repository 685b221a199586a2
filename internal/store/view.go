package store

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/unit"
)

// Ingresses are those of our class that name the host, may have it, and are not
// canaries, in no order.
func (s *Store) Ingresses(host string) []*networkingv1.Ingress {
	return objects(s.admitted(host, s.byHost[host]), false)
}

// Canaries are those of our class that name the host, may have it, and are canaries, in
// no order.
func (s *Store) Canaries(host string) []*networkingv1.Ingress {
	return objects(s.admitted(host, s.byHost[host]), true)
}

// References are those of an Ingress of our class.
func (s *Store) References(ing *networkingv1.Ingress) spec.References {
	if known := s.ingresses[nameOf(ing)]; known != nil {
		return known.references
	}
	return spec.References{}
}

// Changes is the number of calls of Apply.
func (s *Store) Changes() uint64 { return s.changes }

// Claimants are the Ingresses of our class that have the alias and may, in no order.
func (s *Store) Claimants(alias string) []*networkingv1.Ingress {
	return objects(s.admitted(alias, s.byAlias[alias]), false)
}

// RedirectAliases are the Ingresses of our class that claim the name as a www
// redirect alias and may have it and its host, in no order.
func (s *Store) RedirectAliases(name string) []*networkingv1.Ingress {
	claims := s.admitted(name, s.byRedirectAlias[name])
	if host, ok := spec.RedirectAlias(name); ok {
		claims = s.admitted(host, claims)
	}
	return objects(claims, false)
}

// PatternAliases are the aliases for more than one name, in no order.
func (s *Store) PatternAliases() []string {
	var list []string
	for alias := range s.byAlias {
		if model.KindOfAlias(alias) != model.OneName {
			list = append(list, alias)
		}
	}
	return list
}

func objects(ingresses []*ingress, canaries bool) []*networkingv1.Ingress {
	list := make([]*networkingv1.Ingress, 0, len(ingresses))
	for _, ing := range ingresses {
		if ing.references.IsCanary == canaries {
			list = append(list, ing.object)
		}
	}
	return list
}

// Service is nil if there is none of that name.
func (s *Store) Service(name types.NamespacedName) *corev1.Service { return s.services[name] }

// EndpointSlices are those of the named Service, in no order. The caller must not
// change the list.
func (s *Store) EndpointSlices(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	return s.slicesOfTarget[service]
}

// Secret is nil if there is none of that name.
func (s *Store) Secret(name types.NamespacedName) *corev1.Secret { return s.secrets[name] }

// DefaultBackend is the Service for requests that match no rule, empty for none.
func (s *Store) DefaultBackend() types.NamespacedName { return s.settings.DefaultBackend }

// NamedConfigMap is nil if there is none of that name.
func (s *Store) NamedConfigMap(name types.NamespacedName) *corev1.ConfigMap {
	return s.configMaps[name]
}

// DefaultCertificate is the Secret with the certificate of names without one of
// their own, empty for none.
func (s *Store) DefaultCertificate() types.NamespacedName { return s.settings.DefaultCertificate }

// ConfigMap is the one with Headgate's options, nil if there is none.
func (s *Store) ConfigMap() *corev1.ConfigMap { return s.configMaps[s.settings.ConfigMap] }

// ConfigMapName is the name of the ConfigMap with Headgate's options, empty if there is to
// be none.
func (s *Store) ConfigMapName() types.NamespacedName { return s.settings.ConfigMap }

// Template is the administrator's template of nginx.conf, nil if there is none.
func (s *Store) Template() *source.Template { return s.template }

func (s *Store) applyTemplate(t *source.Template, deleted bool) []unit.Key {
	if s.template = t; deleted {
		s.template = nil
	}
	return []unit.Key{unit.GlobalsKey}
}

// Addresses are those of a DNS name, nil until they were delivered.
func (s *Store) Addresses(name string) *source.Addresses { return s.addresses[name] }

// Health is that of a backend's endpoints, nil while all are healthy or not checked.
func (s *Store) Health(backendKey string) *source.Health { return s.health[backendKey] }

// ExternalNames reports whether Services of type ExternalName are served.
func (s *Store) ExternalNames() bool { return !s.settings.NoExternalNames }

// Passthrough reports whether TLS connections may be passed through.
func (s *Store) Passthrough() bool { return s.settings.Passthrough }

// LocalAddresses reports whether backends of tenants may have local addresses.
func (s *Store) LocalAddresses() bool { return s.settings.LocalAddresses }

// Listeners are the addresses at which this instance is reached.
func (s *Store) Listeners() []netip.AddrPort { return s.settings.Listeners }

// ManualEndpoints reports whether no controller writes EndpointSlices.
func (s *Store) ManualEndpoints() bool { return s.settings.ManualEndpoints }

// Scope defines which Ingresses are excluded because of their content.
func (s *Store) Scope() spec.Scope { return s.settings.Scope }

// Refused is the Ingress of that name if it is of our class, but excluded because
// of its content; otherwise nil.
func (s *Store) Refused(name types.NamespacedName) *networkingv1.Ingress {
	if ing := s.ingresses[name]; ing != nil && ing.refused {
		return ing.object
	}
	return nil
}

// Serves reports whether there is an Ingress of that name, of our class and not
// excluded.
func (s *Store) Serves(name types.NamespacedName) bool {
	ing := s.ingresses[name]
	return ing != nil && ing.ours
}

// Ingress is the Ingress of that name, of any class, nil if there is none.
func (s *Store) Ingress(name types.NamespacedName) *networkingv1.Ingress {
	if ing := s.ingresses[name]; ing != nil {
		return ing.object
	}
	return nil
}

// Zone is that of the Node that Headgate runs on, empty if it is not known.
func (s *Store) Zone() string { return s.zone }

// Users are the Ingresses of our class whose routes lead to the backend, in no
// order.
func (s *Store) Users(backendKey string) []*networkingv1.Ingress {
	return s.referrers(backendKey, false)
}

// Callers are the Ingresses of our class whose routes call the backend besides
// their own ones, in no order.
func (s *Store) Callers(backendKey string) []*networkingv1.Ingress {
	return s.referrers(backendKey, true)
}

func (s *Store) referrers(backendKey string, call bool) []*networkingv1.Ingress {
	service, _, ok := spec.SplitKey(backendKey)
	if !ok {
		return nil
	}
	var list []*networkingv1.Ingress
	for _, b := range s.backends[service] {
		if b.key == backendKey && b.call == call && b.user != nil {
			list = append(list, b.user.object)
		}
	}
	return list
}

// CalledByOptions reports whether all routes call the backend because of the
// ConfigMap with Headgate's options.
func (s *Store) CalledByOptions(backendKey string) bool {
	return slices.ContainsFunc(s.optionCalls, func(ref spec.BackendReference) bool { return ref.Key == backendKey })
}

// Referenced reports whether an Ingress of our class uses or calls the backend,
// the options call it, or it is the default one.
func (s *Store) Referenced(backendKey string) bool {
	service, port, ok := spec.SplitKey(backendKey)
	if ok && port == model.FirstPort && service == s.settings.DefaultBackend {
		return true
	}
	return ok && s.inUse(spec.BackendReference{Key: backendKey, Service: service})
}
