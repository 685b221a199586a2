// Package spec says what one Ingress names, by itself: hosts, backends, Secrets
// and further names, and whether it is left out as a whole.
//
// It is pure, like package build. It knows no View and no feature: which objects
// exist, what other Ingresses say and what annotations mean is for others.
package spec

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
	// Objects are those that annotations, or keys of the options, refer to.
	Objects []feature.Reference
	// Aliases are further names that the Ingress claims for its hosts, see
	// model.KindOfAlias.
	Aliases []string
	// RedirectAliases are names that the Ingress claims for the sake of its hosts, see
	// RedirectAlias.
	RedirectAliases []string
	// IsCanary is set where the Ingress makes no routes: it offers canaries to
	// those of others.
	IsCanary bool
	// SharedWith are namespaces that the Ingress shares its hosts with.
	SharedWith []string
	// OwnHosts is set on the references of options under which a name belongs to one
	// namespace.
	OwnHosts bool
	// SaysOfBackends is set where the Ingress is a canary, or has annotations that are settings
	// of its backends, or a backend that answers for them.
	SaysOfBackends bool
}

// A BackendReference is a backend's key and the Service that it belongs to, or
// the name of model.NoNamespace.
type BackendReference struct {
	Key     string
	Service types.NamespacedName
}

// SortBackends sorts a list and takes duplicates out.
func SortBackends(refs []BackendReference) []BackendReference {
	slices.SortFunc(refs, func(a, b BackendReference) int { return cmp.Compare(a.Key, b.Key) })
	return slices.Compact(refs)
}

// TLSSecrets are those of spec.tls, sorted.
func TLSSecrets(ing *networkingv1.Ingress) []types.NamespacedName {
	var list []types.NamespacedName
	for _, entry := range ing.Spec.TLS {
		if entry.SecretName != "" {
			list = append(list, types.NamespacedName{Namespace: ing.Namespace, Name: entry.SecretName})
		}
	}
	slices.SortFunc(list, func(a, b types.NamespacedName) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Compact(list)
}

// HostName is the name of the host that a rule's host text means. It is false
// for a text that the API server would have refused; files may hold any.
func HostName(text string) (name string, ok bool) {
	if text == "" {
		return model.DefaultHost, true
	}
	name = strings.ToLower(strings.TrimSuffix(text, "."))
	if strings.HasPrefix(name, "*.") {
		return name, len(validation.IsWildcardDNS1123Subdomain(name)) == 0
	}
	return name, len(validation.IsDNS1123Subdomain(name)) == 0
}

// A Rejection says why a part of an Ingress is not served.
type Rejection struct {
	Code    finding.Code
	Message string
}

// ReadBackend is the backend that a path or spec.defaultBackend leads to.
func ReadBackend(namespace string, b *networkingv1.IngressBackend) (BackendReference, *Rejection) {
	if b.Service == nil {
		if b.Resource != nil {
			return BackendReference{}, &Rejection{finding.NotSupported, "the backend must be a Service: resources are not supported"}
		}
		return BackendReference{}, &Rejection{finding.InvalidValue, "the backend must name a Service"}
	}
	service := types.NamespacedName{Namespace: namespace, Name: b.Service.Name}
	if problems := validation.IsDNS1123Label(service.Name); len(problems) > 0 {
		return BackendReference{}, &Rejection{finding.InvalidValue, fmt.Sprintf("invalid name of a Service %q: must be lower-case letters, digits and -", finding.Shorten(service.Name))}
	}
	port := b.Service.Port.Name
	if port == "" {
		number := b.Service.Port.Number
		if number < 1 || number > 65535 {
			return BackendReference{}, &Rejection{finding.InvalidValue, "the port must be a name, or a number from 1 to 65535"}
		}
		port = strconv.Itoa(int(number))
	} else if problems := validation.IsValidPortName(port); len(problems) > 0 {
		return BackendReference{}, &Rejection{finding.InvalidValue, fmt.Sprintf("%q is not the name of a port", finding.Shorten(port))}
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

// RedirectAlias is the name that differs from a host's by "www." at its start. A host
// that stands for more than one name has none.
func RedirectAlias(host string) (name string, ok bool) {
	if host == model.DefaultHost || model.KindOfAlias(host) != model.OneName {
		return "", false
	}
	if bare, www := strings.CutPrefix(host, "www."); www {
		return bare, true
	}
	return "www." + host, true
}

// RedirectAliases are those of hosts, sorted.
func RedirectAliases(hosts []string) []string {
	var list []string
	for _, host := range hosts {
		if name, ok := RedirectAlias(host); ok {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// CallReferences are the backends of calls of an Ingress with these hosts. A
// call to the host itself may need the host's addresses (see feature.Host),
// unless the host stands for many names.
func CallReferences(calls []model.Call, hosts []string) []BackendReference {
	var refs []BackendReference
	for _, call := range calls {
		if !call.SameHost {
			refs = append(refs, callReference(call))
			continue
		}
		for _, host := range hosts {
			if !IsManyNames(host) {
				call.Host = host
				refs = append(refs, callReference(call))
			}
		}
	}
	return SortBackends(refs)
}

func callReference(call model.Call) BackendReference {
	key := call.Backend()
	service, _, _ := SplitKey(key)
	return BackendReference{Key: key, Service: service}
}

// IsManyNames reports whether a host stands for more than one name.
func IsManyNames(host string) bool {
	return host == model.DefaultHost || strings.HasPrefix(host, "*.")
}

// OldestFirst orders Ingresses by who wins a conflict.
func OldestFirst(ingresses []*networkingv1.Ingress) []*networkingv1.Ingress {
	sorted := slices.Clone(ingresses)
	slices.SortFunc(sorted, CompareAge)
	return sorted
}

// CompareAge puts the Ingress first that wins a conflict.
func CompareAge(a, b *networkingv1.Ingress) int { return Origin(a).CompareAge(Origin(b)) }

// ObjectName is the Ingress's name in findings.
func ObjectName(ing *networkingv1.Ingress) string { return "ingress/" + ing.Namespace + "/" + ing.Name }

// OriginName is the name in findings of the Ingress that something comes from.
func OriginName(o model.Origin) string { return "ingress/" + o.Namespace + "/" + o.Ingress }

// Origin says of what comes from the Ingress where it comes from.
func Origin(ing *networkingv1.Ingress) model.Origin {
	return model.Origin{Namespace: ing.Namespace, Ingress: ing.Name, Created: ing.CreationTimestamp.Time}
}
