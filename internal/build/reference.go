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
	// Secrets are those of spec.tls.
	Secrets []types.NamespacedName
	// Aliases are further names that the Ingress claims for its hosts, see
	// model.KindOfAlias.
	Aliases []string
	// SaysOfBackends is set where the Ingress has annotations that are settings
	// of its backends.
	SaysOfBackends bool
}

// A BackendReference is a backend's key and the Service that it belongs to.
type BackendReference struct {
	Key     string
	Service types.NamespacedName
}

// Refer lists what an Ingress names. Rules whose host no name can equal, and
// backends that name no Service port, are passed over.
func (b *Builder) Refer(ing *networkingv1.Ingress) References {
	reader := feature.NewReader(b.prefix, ing.Annotations, b.noConfig)
	refs := References{Aliases: b.aliases(reader), SaysOfBackends: b.saysOfBackends(ing)}
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
	if ref, ok := b.fallback(ing.Namespace, reader); ok {
		refs.Backends = append(refs.Backends, ref)
	}
	for _, entry := range ing.Spec.TLS {
		if entry.SecretName != "" {
			refs.Secrets = append(refs.Secrets, types.NamespacedName{Namespace: ing.Namespace, Name: entry.SecretName})
		}
	}
	slices.Sort(refs.Hosts)
	refs.Hosts = slices.Compact(refs.Hosts)
	slices.SortFunc(refs.Backends, func(a, b BackendReference) int { return cmp.Compare(a.Key, b.Key) })
	refs.Backends = slices.Compact(refs.Backends)
	slices.SortFunc(refs.Secrets, func(a, b types.NamespacedName) int { return cmp.Compare(a.Name, b.Name) })
	refs.Secrets = slices.Compact(refs.Secrets)
	return refs
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
		return BackendReference{}, &refusal{finding.InvalidValue, fmt.Sprintf("%q is no name of a Service", shorten(service.Name))}
	}
	port := b.Service.Port.Name
	if port == "" {
		number := b.Service.Port.Number
		if number < 1 || number > 65535 {
			return BackendReference{}, &refusal{finding.InvalidValue, "a port's name, or its number from 1 to 65535, is needed"}
		}
		port = strconv.Itoa(int(number))
	} else if problems := validation.IsValidPortName(port); len(problems) > 0 {
		return BackendReference{}, &refusal{finding.InvalidValue, fmt.Sprintf("%q is no name of a port", shorten(port))}
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

// shorten keeps what tenants wrote to a length that a finding can carry.
func shorten(text string) string {
	const most = 80
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
