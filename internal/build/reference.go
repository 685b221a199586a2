package build

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
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
	RedirectAliases []string
	// Aside is set where the Ingress makes no routes: it offers alternatives to
	// those of others.
	IsCanary bool
	// SaysOfBackends is set where the Ingress has annotations that are settings
	// of its backends.
	SaysOfBackends bool
}

// A BackendReference is a backend's key and the Service that it belongs to, or
// the name of model.NoNamespace.
type BackendReference struct {
	Key     string
	Service types.NamespacedName
}

// Refer lists what an Ingress names under the ConfigMap with the options, which
// may be nil. Rules whose host no name can equal, and backends that name no
// Service port, are passed over. Annotations of an Ingress that the administrator
// forbids name nothing. Without an Ingress it lists what the options alone have
// all routes call.
func (b *Builder) Refer(ing *networkingv1.Ingress, options *corev1.ConfigMap) References {
	config := b.parseConfig(options).config
	calls := b.calls(config.Values())
	if ing == nil {
		return References{Calls: callReferences(calls, nil)}
	}
	parsed := b.parse(ing, config)
	refs := References{SaysOfBackends: parsed.Values().Says(feature.ScopeBackend)}
	canary, _, _ := b.alternative(parsed)
	refs.IsCanary = canary != ""
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
	slices.Sort(refs.Hosts)
	refs.Hosts = slices.Compact(refs.Hosts)
	if !refs.IsCanary {
		b.referByAnnotations(parsed, calls, &refs)
		refs.Secrets = tlsSecrets(ing)
	}
	refs.Backends = sortBackends(refs.Backends)
	return refs
}

// referByAnnotations adds what annotations name. What the options call for all
// routes is not the Ingress's.
func (b *Builder) referByAnnotations(parsed *feature.Parsed, optionCalls []model.Call, refs *References) {
	for _, ref := range parsed.References() {
		if ref.Kind != feature.Service {
			refs.Objects = append(refs.Objects, ref)
			continue
		}
		refs.Backends = append(refs.Backends, BackendReference{
			Key: model.BackendKey(ref.Namespace, ref.Name, model.FirstPort), Service: types.NamespacedName(ref.ObjectName),
		})
	}
	slices.SortFunc(refs.Objects, func(a, b feature.Reference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	refs.Objects = slices.Compact(refs.Objects)
	names := b.namesOf(parsed.Values())
	refs.Aliases = names.Aliases
	if names.WWWBy != nil {
		refs.RedirectAliases = twins(refs.Hosts)
	}
	calls := slices.DeleteFunc(b.calls(parsed.Values()), func(c model.Call) bool { return slices.Contains(optionCalls, c) })
	refs.Calls = callReferences(calls, refs.Hosts)
}

// claims are the names that an Ingress claims.
func (b *Builder) claims(ing *networkingv1.Ingress, v View) feature.NamesOut {
	return b.namesOf(b.parse(ing, b.settings(v).config).Values())
}

// namesOf are the names that values claim, the aliases sorted.
func (b *Builder) namesOf(v feature.Values) (out feature.NamesOut) {
	for _, f := range b.features {
		if f.Names != nil {
			f.Names(v, &out)
		}
	}
	slices.Sort(out.Aliases)
	out.Aliases = slices.Compact(out.Aliases)
	return out
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
		return BackendReference{}, &refusal{finding.InvalidValue, fmt.Sprintf("%q is not the name of a Service", feature.Shorten(service.Name))}
	}
	port := b.Service.Port.Name
	if port == "" {
		number := b.Service.Port.Number
		if number < 1 || number > 65535 {
			return BackendReference{}, &refusal{finding.InvalidValue, "a port's name, or its number from 1 to 65535, is needed"}
		}
		port = strconv.Itoa(int(number))
	} else if problems := validation.IsValidPortName(port); len(problems) > 0 {
		return BackendReference{}, &refusal{finding.InvalidValue, fmt.Sprintf("%q is not the name of a port", feature.Shorten(port))}
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
