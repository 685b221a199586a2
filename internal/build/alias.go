package build

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// NamePatterns builds the aliases that stand for more than one name, and the
// certificates that they show. They are not found if there are none.
func (b *Builder) NamePatterns(v View) (p model.NamePatterns, certificates []model.Certificate, found bool, fs []finding.Finding) {
	for _, alias := range slices.Sorted(slices.Values(v.PatternAliases())) {
		if hosts := v.Ingresses(alias); len(hosts) > 0 {
			fs = append(fs, b.aliasesLost(alias, "host "+alias, hosts, v)...)
			continue
		}
		n, certificate, found, findings := b.alias(alias, v)
		fs = append(fs, findings...)
		if !found {
			continue
		}
		if certificate != nil {
			certificates = append(certificates, *certificate)
		}
		switch model.KindOfAlias(alias) {
		case model.Head:
			p.Heads = append(p.Heads, n)
		case model.Tail:
			p.Tails = append(p.Tails, n)
		case model.Regex:
			p.Regexes = append(p.Regexes, n)
		}
	}
	// As the predecessor has them.
	slices.SortStableFunc(p.Regexes, func(a, b model.Name) int { return cmp.Compare(a.Host, b.Host) })
	return p, certificates, !p.Empty(), finding.Sort(fs)
}

// alias builds a name that is only an alias. It shows the certificate of its
// host only if that is for the alias too.
func (b *Builder) alias(alias string, v View) (n model.Name, certificate *model.Certificate, found bool, fs []finding.Finding) {
	owner, host := b.aliasOwner(alias, v)
	if owner == nil {
		return model.Name{}, nil, false, b.aliasesLost(alias, "", nil, v)
	}
	n = model.Name{Name: alias, Host: host}
	for _, ing := range oldestFirst(v.Ingresses(host)) {
		s := search{builder: b, view: v, ingress: ing, name: host}
		secured, parsed := s.run()
		if !secured {
			continue
		}
		if parsed != nil && model.KindOfAlias(alias) <= model.Head && parsed.covers(alias) {
			n.Secured, n.Certificate, certificate = true, parsed.certificate.Hash, parsed.certificate
		}
		break
	}
	return n, certificate, true, b.aliasesLost(alias, objectName(owner), []*networkingv1.Ingress{owner}, v)
}

// aliasOwner is the Ingress whose alias counts, and the host that it is of. A
// host has the aliases of its oldest Ingress with any.
func (b *Builder) aliasOwner(alias string, v View) (owner *networkingv1.Ingress, host string) {
	for _, ing := range oldestFirst(v.Claimants(alias)) {
		for _, host := range b.Refer(ing).Hosts {
			if b.namesHost(host, v) == ing {
				return ing, host
			}
		}
	}
	return nil, ""
}

// namesHost is the Ingress whose aliases a host has, nil if none has any.
func (b *Builder) namesHost(host string, v View) *networkingv1.Ingress {
	for _, ing := range oldestFirst(v.Ingresses(host)) {
		if len(b.aliases(ing)) > 0 {
			return ing
		}
	}
	return nil
}

// aliasesLost are the findings of those Ingresses that claim the alias and are
// none of the owners. Winner names who has it, empty if nobody has.
func (b *Builder) aliasesLost(alias, winner string, owners []*networkingv1.Ingress, v View) []finding.Finding {
	var fs []finding.Finding
	for _, ing := range v.Claimants(alias) {
		if slices.Contains(owners, ing) {
			continue
		}
		message := fmt.Sprintf("the alias %s is taken by %s", shorten(alias), winner)
		if winner == "" {
			message = "an older Ingress gives the host its aliases"
		}
		fs = append(fs, finding.Finding{
			Object: objectName(ing), Field: b.aliasField(ing), Code: finding.Conflict,
			Message: message, Effect: fmt.Sprintf("requests for %s do not come to this Ingress", shorten(strings.TrimPrefix(alias, "~"))),
		})
	}
	return fs
}

// aliasField is the annotation of an Ingress that claims aliases.
func (b *Builder) aliasField(ing *networkingv1.Ingress) string {
	for _, f := range b.features {
		if f.Aliases == nil {
			continue
		}
		for _, s := range f.Settings {
			if name := b.prefix + "/" + s.Declaration().Annotation; ing.Annotations[name] != "" {
				return name
			}
		}
	}
	return "metadata.annotations"
}
