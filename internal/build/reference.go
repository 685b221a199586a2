package build

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// References are what an Ingress names. A store indexes by them; build reads
// nothing for an Ingress that is not among them, so that no change is missed.
// All lists are sorted and without duplicates.
type References struct {
	Hosts    []string
	Backends []BackendReference
	// Calls are the backends that its routes ask besides. They give the Ingress
	// no say over these.
	Calls []BackendReference
	// Secrets are those of spec.tls.
	Secrets []types.NamespacedName
	// Objects are those that annotations refer to.
	Objects []feature.Reference
	// Aliases are further names that the Ingress claims for its hosts, see
	// model.KindOfAlias.
	Aliases []string
	// Twins are names that the Ingress claims for the sake of its hosts, see
	// Twin.
	Twins []string
	// Aside is set where the Ingress makes no routes: it offers alternatives to
	// those of others.
	Aside bool
	// SaysOfBackends is set where the Ingress has annotations that are settings
	// of its backends.
	SaysOfBackends bool
}

// A BackendReference is a backend's key and the Service that it belongs to, or
// the name of model.NoNamespace in its place.
type BackendReference struct {
	Key     string
	Service types.NamespacedName
}

// Refer lists what an Ingress names. Rules whose host no name can equal, and
// backends that name no Service port, are passed over.
func (b *Builder) Refer(ing *networkingv1.Ingress) References {
	reader := b.reader(ing, b.noConfig, nil)
	refs := References{SaysOfBackends: b.saysOfBackends(ing)}
	_, _, refs.Aside = b.alternative(reader)
	if !refs.Aside {
		refs.Aliases, refs.Objects = b.aliases(reader), b.objects(reader)
	}
	backend := func(written *networkingv1.IngressBackend) {
		if ref, refused := readBackend(ing.Namespace, written); refused == nil {
			refs.Backends = append(refs.Backends, ref)
		}
	}
	if ing.Spec.DefaultBackend != nil {
		backend(ing.Spec.DefaultBackend)
		if len(ing.Spec.Rules) == 0 {
			refs.Hosts = append(refs.Hosts, model.DefaultHost)
		}
	}
	for _, rule := range ing.Spec.Rules {
		if host, ok := hostName(rule.Host); ok {
			refs.Hosts = append(refs.Hosts, host)
		}
		if rule.HTTP == nil {
			continue
		}
		for i := range rule.HTTP.Paths {
			backend(&rule.HTTP.Paths[i].Backend)
		}
	}
	if !refs.Aside {
		if ref, ok := b.fallback(ing.Namespace, reader); ok {
			refs.Backends = append(refs.Backends, ref)
		}
		refs.Secrets = tlsSecrets(ing)
	}
	slices.Sort(refs.Hosts)
	refs.Hosts = slices.Compact(refs.Hosts)
	if !refs.Aside && b.claimsTwins(reader) {
		refs.Twins = twins(refs.Hosts)
	}
	if !refs.Aside {
		refs.Calls = b.callReferences(reader, refs.Hosts)
	}
	refs.Backends = sortBackends(refs.Backends)
	return refs
}

func sortBackends(refs []BackendReference) []BackendReference {
	slices.SortFunc(refs, func(a, b BackendReference) int { return cmp.Compare(a.Key, b.Key) })
	return slices.Compact(refs)
}

func tlsSecrets(ing *networkingv1.Ingress) []types.NamespacedName {
	var list []types.NamespacedName
	for _, entry := range ing.Spec.TLS {
		if entry.SecretName != "" {
			list = append(list, types.NamespacedName{Namespace: ing.Namespace, Name: entry.SecretName})
		}
	}
	slices.SortFunc(list, func(a, b types.NamespacedName) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Compact(list)
}

// objects are those that the annotations refer to, sorted.
func (b *Builder) objects(reader *feature.Reader) []feature.Reference {
	var list []feature.Reference
	for _, f := range b.features {
		list = append(list, feature.Refer(reader, f.Settings)...)
	}
	slices.SortFunc(list, func(a, b feature.Reference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return slices.Compact(list)
}

// reader reads the annotations of an Ingress. View may be nil where no feature
// is asked for what an object says.
func (b *Builder) reader(ing *networkingv1.Ingress, config *feature.Config, v View) *feature.Reader {
	return feature.NewReader(b.prefix, ing.Annotations, config).Of(origin(ing), feature.Objects{
		Secret: func(name feature.ObjectName) (map[string][]byte, bool) {
			if secret := v.Secret(types.NamespacedName(name)); secret != nil {
				return secret.Data, true
			}
			return nil, false
		},
		ConfigMap: func(name feature.ObjectName) (map[string]string, bool) {
			if configMap := v.NamedConfigMap(types.NamespacedName(name)); configMap != nil {
				return configMap.Data, true
			}
			return nil, false
		},
		Derive: func(secret feature.ObjectName, key string, make func() any) any {
			of := derivation{v.Secret(types.NamespacedName(secret)), key}
			return b.derived.get(of, func(derivation) any { return make() })
		},
	})
}

// aliases are the further names that an Ingress claims, sorted.
func (b *Builder) aliases(reader *feature.Reader) []string {
	var list []string
	for _, f := range b.features {
		if f.Aliases != nil {
			list = append(list, f.Aliases(reader)...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// fallback is the backend that answers where those of an Ingress have no
// endpoint.
func (b *Builder) fallback(namespace string, reader *feature.Reader) (ref BackendReference, ok bool) {
	for _, f := range b.features {
		if f.Fallback == nil {
			continue
		}
		if name := f.Fallback(reader); name != "" {
			service := types.NamespacedName{Namespace: namespace, Name: name}
			return BackendReference{Key: model.BackendKey(namespace, name, model.FirstPort), Service: service}, true
		}
	}
	return BackendReference{}, false
}

// hostName is the name of the host that a rule's host text means. It is false
// for a text that the API server would have refused; files may hold any.
func hostName(text string) (name string, ok bool) {
	if text == "" {
		return model.DefaultHost, true
	}
	name = strings.ToLower(strings.TrimSuffix(text, "."))
	if strings.HasPrefix(name, "*.") {
		return name, len(validation.IsWildcardDNS1123Subdomain(name)) == 0
	}
	return name, len(validation.IsDNS1123Subdomain(name)) == 0
}

// A refusal says why a part of an Ingress is not served.
type refusal struct {
	code    finding.Code
	message string
}

// readBackend is the backend that a path or spec.defaultBackend leads to.
func readBackend(namespace string, b *networkingv1.IngressBackend) (BackendReference, *refusal) {
	if b.Service == nil {
		if b.Resource != nil {
			return BackendReference{}, &refusal{finding.NotSupported, "a resource can't be a backend, only a Service"}
		}
		return BackendReference{}, &refusal{finding.InvalidValue, "no Service is named"}
	}
	service := types.NamespacedName{Namespace: namespace, Name: b.Service.Name}
	if problems := validation.IsDNS1123Label(service.Name); len(problems) > 0 {
		return BackendReference{}, &refusal{finding.InvalidValue, fmt.Sprintf("%q is no name of a Service", feature.Shorten(service.Name))}
	}
	port := b.Service.Port.Name
	if port == "" {
		number := b.Service.Port.Number
		if number < 1 || number > 65535 {
			return BackendReference{}, &refusal{finding.InvalidValue, "a port's name, or its number from 1 to 65535, is needed"}
		}
		port = strconv.Itoa(int(number))
	} else if problems := validation.IsValidPortName(port); len(problems) > 0 {
		return BackendReference{}, &refusal{finding.InvalidValue, fmt.Sprintf("%q is no name of a port", feature.Shorten(port))}
	}
	return BackendReference{Key: model.BackendKey(namespace, service.Name, port), Service: service}, nil
}

// SplitKey takes a backend's key apart: neither part can hold a slash.
func SplitKey(key string) (service types.NamespacedName, port string, ok bool) {
	parts := strings.Split(key, "/")
	if len(parts) != 3 {
		return types.NamespacedName{}, "", false
	}
	return types.NamespacedName{Namespace: parts[0], Name: parts[1]}, parts[2], true
}
