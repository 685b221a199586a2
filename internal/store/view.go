package store

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/source"
)

// Ingresses are those of our class that name the host, in no order.
func (s *Store) Ingresses(host string) []*networkingv1.Ingress { return objects(s.byHost[host]) }

// References are those of an Ingress of our class, as they were found when it
// was applied.
func (s *Store) References(ing *networkingv1.Ingress) build.References {
	if known := s.ingresses[nameOf(ing)]; known != nil {
		return known.references
	}
	return build.References{}
}

// Changes is the number of objects that were applied.
func (s *Store) Changes() uint64 { return s.changes }

// Claimants are the Ingresses of our class that have the alias, in no order.
func (s *Store) Claimants(alias string) []*networkingv1.Ingress { return objects(s.byAlias[alias]) }

// PatternAliases are the aliases that stand for more than one name, in no
// order.
func (s *Store) PatternAliases() []string {
	var list []string
	for alias := range s.byAlias {
		if model.KindOfAlias(alias) != model.OneName {
			list = append(list, alias)
		}
	}
	return list
}

func objects(ingresses []*ingress) []*networkingv1.Ingress {
	list := make([]*networkingv1.Ingress, len(ingresses))
	for i, ing := range ingresses {
		list[i] = ing.object
	}
	return list
}

// Service is nil if there is none of that name.
func (s *Store) Service(name types.NamespacedName) *corev1.Service { return s.services[name] }

// EndpointSlices are those of the named Service, in no order. The list is the
// Store's own.
func (s *Store) EndpointSlices(service types.NamespacedName) []*discoveryv1.EndpointSlice {
	return s.slicesOfTarget[service]
}

// Secret is nil if there is none of that name.
func (s *Store) Secret(name types.NamespacedName) *corev1.Secret { return s.secrets[name] }

// DefaultBackend is the Service that answers what no rule does, empty for none.
func (s *Store) DefaultBackend() types.NamespacedName { return s.settings.DefaultBackend }

// ConfigMap is the one with Headgate's options, nil if there is none.
func (s *Store) ConfigMap() *corev1.ConfigMap { return s.configMap }

// Addresses are those of a DNS name, nil until they were delivered.
func (s *Store) Addresses(name string) *source.Addresses { return s.addresses[name] }

// ExternalNames tells whether Services of type ExternalName are served.
func (s *Store) ExternalNames() bool { return !s.settings.NoExternalNames }

// Zone is that of the Node that Headgate runs on, empty if it is not known.
func (s *Store) Zone() string { return s.zone }

// Users are the Ingresses of our class that refer to the backend, in no order.
func (s *Store) Users(backendKey string) []*networkingv1.Ingress {
	service, _, ok := build.SplitKey(backendKey)
	if !ok {
		return nil
	}
	var users []*networkingv1.Ingress
	for _, b := range s.backends[service] {
		if b.key == backendKey {
			users = append(users, b.user.object)
		}
	}
	return users
}

// Referenced tells whether an Ingress of our class refers to the backend, or it
// is the default one.
func (s *Store) Referenced(backendKey string) bool {
	service, port, ok := build.SplitKey(backendKey)
	if ok && port == model.FirstPort && service == s.settings.DefaultBackend {
		return true
	}
	return ok && s.inUse(build.BackendReference{Key: backendKey, Service: service})
}
