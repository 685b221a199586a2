// Package servername builds names: which host answers for a server name, and
// which certificate it shows.
//
// It is pure, like package build. It knows rules by their hosts, aliases and TLS
// sections, and nothing of routes and backends.
package servername

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/certificate"
	"github.com/headgate/headgate/internal/build/setting"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/build/tenancy"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// A View shows the newest objects, lists in any order. Ingresses are those of our
// class.
type View interface {
	certificate.View
	setting.View
	tenancy.View
	// Ingresses are those that name the host, but for canaries.
	Ingresses(host string) []*networkingv1.Ingress
	// References are those of an Ingress that was shown (see setting.Reader.Refer).
	References(*networkingv1.Ingress) spec.References
	// Changes counts up with every change of what is shown.
	Changes() uint64
	// Claimants are the Ingresses that have the alias among their aliases.
	Claimants(alias string) []*networkingv1.Ingress
	// RedirectAliases are the Ingresses that claim the name as a www redirect alias.
	RedirectAliases(name string) []*networkingv1.Ingress
	// PatternAliases are the aliases of Ingresses that stand for more than one name.
	PatternAliases() []string
}

// A Builder builds names. It remembers what aliases lead to for as long as the
// View shows the same.
type Builder struct {
	settings     *setting.Reader
	certificates *certificate.Reader
	namings      namings
	// expressions are the texts to match by of aliases that are expressions.
	expressions map[string]string
}

// NewBuilder makes a Builder.
func NewBuilder(settings *setting.Reader, certificates *certificate.Reader) *Builder {
	return &Builder{settings: settings, certificates: certificates}
}

// Name builds a name, and the certificate that it shows, nil for the default
// certificate. A rule's host comes before an alias, and an alias before a
// www redirect alias. Of the aliases the oldest Ingress's counts. (ingress-nginx
// lets the host decide that comes first in the alphabet, so that a newcomer can
// take a name away.)
func (b *Builder) Name(name string, v View) (n model.Name, certificate *model.Certificate, found bool, fs []finding.Finding) {
	if name == model.DefaultHost {
		return model.Name{Name: name, Host: name}, nil, true, nil
	}
	n, certificate, holder, fs := b.name(name, v)
	if model.KindOfAlias(name) == model.OneName {
		fs = append(fs, tenancy.Refused(name, v, b.settings, spec.ByAlias, spec.ByRedirectAlias)...)
	}
	if holder == nil {
		return model.Name{}, nil, false, finding.Sort(fs)
	}
	n.Namespace = holder.Namespace
	if v.OwnHosts() {
		if owner := v.Owner(name).Ingress; owner != nil {
			n.Owner = owner.Namespace
		}
	} else if !n.HasTLS {
		fs = append(fs, covered(name, holder, v)...)
	}
	return n, certificate, true, finding.Sort(fs)
}

// covered are the findings about a name without a certificate that is shown that of
// another namespace's wildcard.
func covered(name string, holder *networkingv1.Ingress, v View) []finding.Finding {
	ing, sharedWith := v.Covering(name)
	if ing == nil || ing.Namespace == holder.Namespace || slices.Contains(sharedWith, holder.Namespace) {
		return nil
	}
	wildcard, _ := model.WildcardAbove(name)
	return tenancy.Taken(ing, "spec.tls", []tenancy.Taking{{
		Ingress: holder, Field: "metadata.namespace",
		What: fmt.Sprintf("serves %s with the certificate of %s", tenancy.Title(name), wildcard),
		Effect: fmt.Sprintf("clients that trust that certificate trust this name, since the key %s is %s",
			feature.HostOwnershipKey, feature.SharedHosts),
	}})
}

// name builds a name without its owner. Holder is the oldest Ingress that has it, nil if
// there is no such name.
func (b *Builder) name(name string, v View) (n model.Name, certificate *model.Certificate, holder *networkingv1.Ingress, fs []finding.Finding) {
	ingresses := spec.OldestFirst(v.Ingresses(name))
	if len(ingresses) > 0 {
		n, certificate, fs = b.ruleName(name, ingresses, v)
		if model.KindOfAlias(name) == model.OneName {
			fs = append(fs, b.aliasesLost(name, "host "+name, ingresses, v)...)
			fs = append(fs, b.redirectAliasesLost(name, "host "+name, v)...)
		}
		return n, certificate, ingresses[0], fs
	}
	if model.KindOfAlias(name) != model.OneName {
		return model.Name{}, nil, nil, nil
	}
	n, certificate, holder, fs = b.alias(name, v)
	if holder == nil {
		var found bool
		if n, certificate, found = b.redirectAlias(name, v); found {
			holder = spec.OldestFirst(v.RedirectAliases(name))[0]
		}
		return n, certificate, holder, fs
	}
	return n, certificate, holder, append(fs, b.redirectAliasesLost(name, spec.ObjectName(holder), v)...)
}

// ruleName builds the name of a rule's host. One Ingress with a TLS section is
// enough to secure it, as in ingress-nginx, regardless of the names that the section lists.
// The oldest that lists the name, or has a certificate for it, decides on the
// certificate, even when that can't be used: then the default one is served.
func (b *Builder) ruleName(name string, ingresses []*networkingv1.Ingress, v View) (n model.Name, certificate *model.Certificate, fs []finding.Finding) {
	n = model.Name{Name: name, Host: name}
	winner := ""
	for _, ing := range ingresses {
		s := search{builder: b, view: v, ingress: ing, name: name}
		decides, parsed := s.run()
		n.HasTLS = n.HasTLS || len(ing.Spec.TLS) > 0
		if winner == "" {
			fs = append(fs, s.findings...)
		}
		switch {
		case !decides:
		case winner == "":
			winner = spec.ObjectName(ing)
			if parsed != nil {
				n.Certificate, certificate = parsed.Certificate.Hash, parsed.Certificate
			}
		case parsed != nil && parsed.Certificate.Hash != n.Certificate:
			s.report(finding.Conflict, fmt.Sprintf("%s, which is older, sets the certificate of %s", winner, name),
				"the certificate of this Ingress is not served for "+name)
			fs = append(fs, s.findings[len(s.findings)-1])
		}
	}
	if n.HasTLS && winner == "" {
		fs = append(fs, unlisted(name, ingresses)...)
	}
	return n, certificate, fs
}

// unlisted is the finding for a host that the TLS sections of its Ingresses
// leave out: clients are redirected to https and shown the default certificate.
// An entry with neither host nor Secret asks for that.
func unlisted(name string, ingresses []*networkingv1.Ingress) []finding.Finding {
	at := slices.IndexFunc(ingresses, func(ing *networkingv1.Ingress) bool { return len(ing.Spec.TLS) > 0 })
	isEmpty := func(entry networkingv1.IngressTLS) bool { return len(entry.Hosts) == 0 && entry.SecretName == "" }
	if slices.ContainsFunc(ingresses[at].Spec.TLS, isEmpty) {
		return nil
	}
	return []finding.Finding{{
		Object: spec.ObjectName(ingresses[at]), Field: "spec.tls", Code: finding.HostOutsideTLS,
		Message: fmt.Sprintf("no TLS entry lists host %s, and no certificate of a TLS entry covers it", name),
		Effect:  "requests for it are redirected to https and served with the default certificate",
	}}
}

// A search looks for a name's certificate in one Ingress.
type search struct {
	builder  *Builder
	view     View
	ingress  *networkingv1.Ingress
	name     string
	entry    int // of spec.tls, that is looked at
	findings []finding.Finding
}

// run reports whether the Ingress decides on the certificate, which is nil for
// the default one.
func (s *search) run() (decides bool, parsed *certificate.Parsed) {
	for i, entry := range s.ingress.Spec.TLS {
		if s.entry = i; slices.ContainsFunc(entry.Hosts, s.isName) {
			return true, s.certificateOf(entry, true)
		}
	}
	for i, entry := range s.ingress.Spec.TLS {
		s.entry = i
		if certificate := s.certificateOf(entry, false); certificate != nil {
			return true, certificate
		}
	}
	return false, nil
}

func (s *search) isName(host string) bool {
	return strings.EqualFold(strings.TrimSuffix(host, "."), s.name)
}

// certificateOf is the certificate of a TLS entry that lists the name, or that does
// not but is for the name. Of the latter, only an entry without hosts has findings
// here: others have theirs with the names that they list.
func (s *search) certificateOf(entry networkingv1.IngressTLS, listed bool) *certificate.Parsed {
	if entry.SecretName == "" {
		return nil
	}
	parsed, refused := s.builder.certificates.Load(s.view, types.NamespacedName{Namespace: s.ingress.Namespace, Name: entry.SecretName})
	isFor := refused == nil && (parsed.Covers(s.name) || listed && parsed.CommonNameCovers(s.name))
	switch {
	case isFor && parsed.Incomplete != "":
		s.report(finding.IncompleteChain, parsed.Incomplete, certificate.IncompleteEffect)
	case refused == nil && listed && !isFor:
		message := fmt.Sprintf("the certificate in Secret %s is for %s, not for %s", finding.Shorten(entry.SecretName), parsed.Names(), s.name)
		s.report(finding.BadCertificate, message, "the default certificate is served for "+s.name)
	case refused != nil && listed:
		s.report(refused.Code, refused.Message, "the default certificate is served for "+s.name)
	case refused != nil && len(entry.Hosts) == 0:
		s.report(refused.Code, refused.Message, "this TLS entry has no effect")
	}
	if !isFor {
		return nil
	}
	return &parsed
}

func (s *search) report(code finding.Code, message, effect string) {
	s.findings = append(s.findings, finding.Finding{
		Object: spec.ObjectName(s.ingress), Field: fmt.Sprintf("spec.tls[%d].secretName", s.entry),
		Code: code, Message: message, Effect: effect,
	})
}
