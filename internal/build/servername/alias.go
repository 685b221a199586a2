package servername

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate/headgate/internal/build/certificate"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/build/tenancy"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

// maxExpressions is how many regular expressions the whole instance has as
// aliases: a name that no Ingress has is compared with all of them.
const maxExpressions = 1000

// maxNamespaceExpressions is how many of them one namespace has, so that no namespace
// takes the others' places.
const maxNamespaceExpressions = 64

// NamePatterns builds the aliases that stand for more than one name, and the
// certificates that they show. They are not found if there are none.
func (b *Builder) NamePatterns(v View) (p model.NamePatterns, certificates []model.Certificate, found bool, fs []finding.Finding) {
	var expressions []claim
	shown := map[string]bool{}
	for _, alias := range slices.Sorted(slices.Values(v.PatternAliases())) {
		fs = append(fs, tenancy.Refused(alias, v, b.settings, spec.ByAlias)...)
		if hosts := v.Ingresses(alias); len(hosts) > 0 {
			fs = append(fs, b.aliasesLost(alias, "host "+alias, hosts, v)...)
			continue
		}
		n, certificate, owner, findings := b.alias(alias, v)
		fs = append(fs, findings...)
		if owner == nil {
			continue
		}
		if certificate != nil && !shown[certificate.Hash] {
			shown[certificate.Hash] = true
			certificates = append(certificates, *certificate)
		}
		switch model.KindOfAlias(alias) {
		case model.LeadingWildcard:
			p.LeadingWildcards = append(p.LeadingWildcards, n)
		case model.TrailingWildcard:
			p.TrailingWildcards = append(p.TrailingWildcards, n)
		case model.Regex:
			expressions = append(expressions, claim{n, owner})
		}
	}
	var findings []finding.Finding
	p.Regexes, findings = b.regexes(expressions, v)
	return p, certificates, !p.Empty(), finding.Limit(append(fs, findings...))
}

// A claim is a name that an Ingress gets by an alias.
type claim struct {
	model.Name
	owner *networkingv1.Ingress
}

// regexes puts the text to match by instead of the written one, and keeps
// to maxNamespaceExpressions and maxExpressions: older Ingresses come first.
func (b *Builder) regexes(claims []claim, v View) (names []model.Name, fs []finding.Finding) {
	slices.SortStableFunc(claims, func(a, b claim) int { return spec.CompareAge(a.owner, b.owner) })
	tooMany := func(c claim, whose string, most int) {
		fs = append(fs, finding.Finding{
			Object: spec.ObjectName(c.owner), Field: b.settings.Annotation(b.settings.Claims(c.owner, v).AliasesBy), Code: finding.TooMany,
			Message: fmt.Sprintf("older Ingresses%s have the maximum of %d regular expressions in aliases", whose, most),
			Effect:  noRequests(c.Name.Name),
		})
	}
	has := map[string]int{}
	claims = slices.DeleteFunc(claims, func(c claim) bool {
		if has[c.owner.Namespace]++; has[c.owner.Namespace] > maxNamespaceExpressions {
			tooMany(c, " of the namespace", maxNamespaceExpressions)
			return true
		}
		return false
	})
	for i := maxExpressions; i < len(claims); i++ {
		tooMany(claims[i], "", maxExpressions)
	}
	claims = claims[:min(len(claims), maxExpressions)]
	// Hosts, and of one host the aliases, by the alphabet, as ingress-nginx has them. Where
	// names belong to namespaces, older Ingresses come first: the first one that matches
	// gets the request.
	slices.SortFunc(claims, func(a, b claim) int {
		age := 0
		if v.OwnHosts() {
			age = spec.CompareAge(a.owner, b.owner)
		}
		return cmp.Or(age, cmp.Compare(a.Host, b.Host), cmp.Compare(a.Name.Name, b.Name.Name))
	})
	texts := make(map[string]string, len(claims))
	for _, c := range claims {
		text, ok := b.expressions[c.Name.Name]
		if !ok {
			pattern, err := pcre.Compile(strings.TrimPrefix(c.Name.Name, "~"), pcre.Options{Caseless: true})
			if err != nil {
				continue // the feature has reported it
			}
			text = "~" + pattern.Text()
		}
		texts[c.Name.Name] = text
		c.Name.Name, c.Name.Namespace, c.Name.Ingress = text, c.owner.Namespace, c.owner.Name
		names = append(names, c.Name)
	}
	b.expressions = texts
	return names, fs
}

// alias builds a name that is only an alias. It shows the certificate of its host
// only if that is for the alias too. Owner is nil if there is no such name.
func (b *Builder) alias(alias string, v View) (n model.Name, certificate *model.Certificate, owner *networkingv1.Ingress, fs []finding.Finding) {
	for _, ing := range spec.OldestFirst(v.Claimants(alias)) {
		leads := b.naming(ing, v)
		if leads.host == "" {
			continue
		}
		n = model.Name{Name: alias, Host: leads.host}
		if parsed, _ := b.aliasCertificate(alias, ing, leads, v); parsed != nil {
			n.Certificate, certificate = parsed.Certificate.Hash, parsed.Certificate
			if n.HasTLS = parsed.Covers(alias); !n.HasTLS {
				n.Covers = parsed.DNSNames()
			}
		}
		return n, certificate, ing, b.aliasesLost(alias, spec.ObjectName(ing), []*networkingv1.Ingress{ing}, v)
	}
	return model.Name{}, nil, nil, b.aliasesLost(alias, "", nil, v)
}

// aliasCertificate is the certificate that an alias shows, nil for none: that of its host if it is for
// the alias, or else one of the TLS section of its Ingress that is, which own has found. An alias for
// more than one name shows that of its host for the names that it is for.
func (b *Builder) aliasCertificate(alias string, ing *networkingv1.Ingress, leads naming, v View) (parsed *certificate.Parsed, own *search) {
	kind := model.KindOfAlias(alias)
	if kind <= model.LeadingWildcard {
		if leads.certificate != nil && leads.certificate.Covers(alias) {
			return leads.certificate, nil
		}
		own = &search{builder: b, view: v, ingress: ing, name: alias}
		if _, parsed = own.run(); parsed != nil && parsed.Covers(alias) {
			return parsed, own
		}
	}
	if kind == model.OneName {
		return nil, nil
	}
	return leads.certificate, nil
}

// namings are what aliases lead to, as long as the View shows the same.
type namings struct {
	view    View
	changes uint64
	// named has whose aliases a host has, nil for none.
	named map[string]*networkingv1.Ingress
	leads map[*networkingv1.Ingress]naming
}

// A naming is what all aliases of one Ingress lead to.
type naming struct {
	// host is the first of the Ingress's hosts that has the Ingress's aliases,
	// empty if none has.
	host string
	// certificate is that of the host, nil for none and for the default one.
	certificate *certificate.Parsed
}

// naming is found once for all aliases of an Ingress.
func (b *Builder) naming(ing *networkingv1.Ingress, v View) naming {
	if b.namings.view != v || b.namings.changes != v.Changes() {
		b.namings = namings{v, v.Changes(), map[string]*networkingv1.Ingress{}, map[*networkingv1.Ingress]naming{}}
	}
	leads, known := b.namings.leads[ing]
	if known {
		return leads
	}
	for _, host := range v.References(ing).Hosts {
		if b.namings.of(host) == ing {
			leads.host = host
			leads.certificate, _ = b.hostCertificate(host, v)
			break
		}
	}
	b.namings.leads[ing] = leads
	return leads
}

// of is the Ingress whose aliases a host has: its oldest with any.
func (n *namings) of(host string) *networkingv1.Ingress {
	oldest, known := n.named[host]
	if known {
		return oldest
	}
	for _, ing := range n.view.Ingresses(host) {
		if len(n.view.References(ing).Aliases) > 0 && (oldest == nil || spec.CompareAge(ing, oldest) < 0) {
			oldest = ing
		}
	}
	n.named[host] = oldest
	return oldest
}

// hostCertificate is the certificate of a rule's host, nil for none and for
// the default one, and the search that decides, nil if none does.
func (b *Builder) hostCertificate(host string, v View) (*certificate.Parsed, *search) {
	for _, ing := range spec.OldestFirst(v.Ingresses(host)) {
		s := &search{builder: b, view: v, ingress: ing, name: host}
		if decides, parsed := s.run(); decides {
			return parsed, s
		}
	}
	return nil, nil
}

// aliasesLost are the findings of those Ingresses that claim the alias and are
// none of the owners. Winner names who has it, empty if no Ingress has.
func (b *Builder) aliasesLost(alias, winner string, owners []*networkingv1.Ingress, v View) []finding.Finding {
	var fs []finding.Finding
	for _, ing := range v.Claimants(alias) {
		if slices.Contains(owners, ing) {
			continue
		}
		message := fmt.Sprintf("the alias %s belongs to %s", finding.Shorten(alias), winner)
		if winner == "" {
			message = "the aliases of the host are those of an older Ingress"
		}
		fs = append(fs, finding.Finding{
			Object: spec.ObjectName(ing), Field: b.settings.Annotation(b.settings.Claims(ing, v).AliasesBy), Code: finding.Conflict,
			Message: message, Effect: noRequests(alias),
		})
	}
	return fs
}

// noRequests is the effect of an alias that its Ingress does not get.
func noRequests(alias string) string {
	return fmt.Sprintf("requests for %s do not go to this Ingress", finding.Shorten(strings.TrimPrefix(alias, "~")))
}

// redirectAlias builds a name that is nothing but the www redirect alias of a host,
// with the host's certificate only if that is for the alias too.
func (b *Builder) redirectAlias(name string, v View) (n model.Name, certificate *model.Certificate, found bool) {
	host, ok := spec.RedirectAlias(name)
	if !ok || len(v.RedirectAliases(name)) == 0 {
		return model.Name{}, nil, false
	}
	n = model.Name{Name: name, Host: host, Redirect: true}
	if parsed, _ := b.hostCertificate(host, v); parsed != nil && parsed.Covers(name) {
		n.HasTLS, n.Certificate, certificate = true, parsed.Certificate.Hash, parsed.Certificate
	}
	return n, certificate, true
}

func (b *Builder) redirectAliasesLost(name, winner string, v View) []finding.Finding {
	var fs []finding.Finding
	for _, ing := range v.RedirectAliases(name) {
		fs = append(fs, finding.Finding{
			Object: spec.ObjectName(ing), Field: b.settings.Annotation(b.settings.Claims(ing, v).WWWBy), Code: finding.Conflict,
			Message: "the name " + finding.Shorten(name) + " belongs to " + winner, Effect: "it is not redirected",
		})
	}
	return fs
}
