package setting

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/model"
)

// Refer lists what an Ingress names under the ConfigMap with the options, which
// may be nil. Rules whose host no name can equal, and backends that name no
// Service port, are passed over. Annotations of an Ingress that the administrator
// forbids name nothing. Without an Ingress it lists what the options alone name, and have
// all routes call.
func (r *Reader) Refer(ing *networkingv1.Ingress, options *corev1.ConfigMap) spec.References {
	config := r.parseConfig(options).Config
	calls := r.Calls(config.Values())
	if ing == nil {
		return spec.References{
			Calls:    spec.CallReferences(calls, nil),
			Objects:  config.References(),
			OwnHosts: feature.HostOwnership(config.Values()) == feature.NamespaceHosts,
		}
	}
	parsed := r.parse(ing, config)
	canary, _, _ := r.Canary(parsed, "")
	refs := spec.References{IsCanary: canary != ""}
	// Backends of canaries keep the sessions of others, and findings say where another one answers.
	refs.SaysOfBackends = refs.IsCanary || r.Fallback(parsed) != "" || parsed.Values().Says(feature.ScopeBackend)
	backend := func(written *networkingv1.IngressBackend) {
		if ref, refused := spec.ReadBackend(ing.Namespace, written); refused == nil {
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
		if host, ok := spec.HostName(rule.Host); ok {
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
		r.referByAnnotations(parsed, calls, &refs)
		refs.Secrets = spec.TLSSecrets(ing)
	}
	refs.Backends = spec.SortBackends(refs.Backends)
	return refs
}

// referByAnnotations adds what annotations name. What the options call for all
// routes is not the Ingress's.
func (r *Reader) referByAnnotations(parsed *feature.Parsed, optionCalls []model.Call, refs *spec.References) {
	for _, ref := range parsed.References() {
		if ref.Kind != feature.Service {
			refs.Objects = append(refs.Objects, ref)
			continue
		}
		refs.Backends = append(refs.Backends, spec.BackendReference{
			Key: model.BackendKey(ref.Namespace, ref.Name, model.FirstPort), Service: types.NamespacedName(ref.ObjectName),
		})
	}
	slices.SortFunc(refs.Objects, func(a, b feature.Reference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	refs.Objects = slices.Compact(refs.Objects)
	names := r.namesOf(parsed.Values())
	refs.Aliases = names.Aliases
	refs.SharedWith = feature.HostSharedWith(parsed.Values())
	if names.WWWBy != nil {
		refs.RedirectAliases = spec.RedirectAliases(refs.Hosts)
	}
	calls := slices.DeleteFunc(r.Calls(parsed.Values()), func(c model.Call) bool { return slices.Contains(optionCalls, c) })
	refs.Calls = spec.CallReferences(calls, refs.Hosts)
}

// Claims are the names that an Ingress claims.
func (r *Reader) Claims(ing *networkingv1.Ingress, v View) feature.NamesOut {
	return r.namesOf(r.parse(ing, r.Options(v).Config).Values())
}

// namesOf are the names that values claim, the aliases sorted.
func (r *Reader) namesOf(v feature.Values) (out feature.NamesOut) {
	for _, f := range r.features {
		if f.Names != nil {
			f.Names(v, &out)
		}
	}
	slices.Sort(out.Aliases)
	out.Aliases = slices.Compact(out.Aliases)
	return out
}

// Calls are the services that routes with these settings ask besides their
// backends.
func (r *Reader) Calls(v feature.Values) []model.Call {
	var list []model.Call
	for _, f := range r.features {
		if f.Calls != nil {
			list = append(list, f.Calls(v)...)
		}
	}
	return list
}

// Canary reports whether an Ingress is a canary, and by which feature, even if
// the administrator forbids it: it makes no routes. The name is empty if it is
// not one. Effect is that of problems with it.
func (r *Reader) Canary(p *feature.Parsed, effect string) (name string, when any, report feature.Report) {
	report = feature.NewReport(p.Written(), effect)
	for _, f := range r.features {
		if f.Canary == nil {
			continue
		}
		if when, ok := f.Canary(p.Written(), &report); ok {
			return f.Name, when, report
		}
	}
	return "", nil, report
}
