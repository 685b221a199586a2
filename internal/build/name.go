package build

import (
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// Name builds a name, and the certificate that it shows, nil for the default
// certificate. A rule's host comes before an alias, and an alias before a
// twin. Of the aliases the oldest
// Ingress's counts. (The predecessor let the host decide that comes first in
// the alphabet, so that a newcomer could take a name away.)
func (b *Builder) Name(name string, v View) (n model.Name, certificate *model.Certificate, found bool, fs []finding.Finding) {
	if name == model.DefaultHost {
		return model.Name{Name: name, Host: name}, nil, true, nil
	}
	ingresses := OldestFirst(v.Ingresses(name))
	if len(ingresses) > 0 {
		n, certificate, fs = b.ruleName(name, ingresses, v)
		if model.KindOfAlias(name) == model.OneName {
			fs = append(fs, b.aliasesLost(name, "host "+name, ingresses, v)...)
			fs = append(fs, b.twinsLost(name, "host "+name, v)...)
		}
		return n, certificate, true, finding.Sort(fs)
	}
	if model.KindOfAlias(name) != model.OneName {
		return model.Name{}, nil, false, nil
	}
	n, certificate, owner, fs := b.alias(name, v)
	if owner == nil {
		n, certificate, found = b.twin(name, v)
		return n, certificate, found, finding.Sort(fs)
	}
	fs = append(fs, b.twinsLost(name, objectName(owner), v)...)
	return n, certificate, true, finding.Sort(fs)
}

// ruleName builds the name of a rule's host. The oldest Ingress that asks for
// TLS on the name decides, even when its certificate can't be used: then the
// default certificate is served, and plain requests are still redirected.
func (b *Builder) ruleName(name string, ingresses []*networkingv1.Ingress, v View) (n model.Name, certificate *model.Certificate, fs []finding.Finding) {
	n = model.Name{Name: name, Host: name}
	winner := ""
	for _, ing := range ingresses {
		s := search{builder: b, view: v, ingress: ing, name: name}
		secured, parsed := s.run()
		if winner == "" {
			fs = append(fs, s.findings...)
		}
		switch {
		case !secured:
		case winner == "":
			n.Secured, winner = true, objectName(ing)
			if parsed != nil {
				n.Certificate, certificate = parsed.certificate.Hash, parsed.certificate
			}
		case parsed != nil && parsed.certificate.Hash != n.Certificate:
			s.tell(&refusal{finding.Conflict, fmt.Sprintf("%s, which is older, decides on the certificate of %s", winner, name)},
				"this Ingress's certificate is not shown for "+name)
			fs = append(fs, s.findings[len(s.findings)-1])
		}
	}
	return n, certificate, fs
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

// run returns nil for a name that is secured and shows the default
// certificate.
func (s *search) run() (secured bool, certificate *parsedCertificate) {
	for i, entry := range s.ingress.Spec.TLS {
		if s.entry = i; slices.ContainsFunc(entry.Hosts, s.isName) {
			return true, s.listed(entry.SecretName)
		}
	}
	for i, entry := range s.ingress.Spec.TLS {
		s.entry = i
		if certificate := s.covering(entry); certificate != nil {
			return true, certificate
		}
	}
	return false, nil
}

func (s *search) isName(host string) bool {
	return strings.EqualFold(strings.TrimSuffix(host, "."), s.name)
}

// listed is the certificate of a TLS entry that lists the name.
func (s *search) listed(secret string) *parsedCertificate {
	if secret == "" {
		return nil
	}
	parsed, refused := s.builder.load(s.view, types.NamespacedName{Namespace: s.ingress.Namespace, Name: secret})
	if refused == nil && !parsed.covers(s.name) && !parsed.commonNameCovers(s.name) {
		refused = &refusal{finding.BadCertificate,
			fmt.Sprintf("the certificate in Secret %s is for %s, not for %s", feature.Shorten(secret), parsed.names(), s.name)}
	}
	if refused != nil {
		s.tell(refused, "the default certificate is served for "+s.name)
		return nil
	}
	s.tellIncomplete(parsed)
	return &parsed
}

// covering is the certificate of a TLS entry that does not list the name, if
// it is for the name. Only an entry without hosts has findings here: others
// have theirs with the names that they list.
func (s *search) covering(tls networkingv1.IngressTLS) *parsedCertificate {
	if tls.SecretName == "" {
		return nil
	}
	parsed, refused := s.builder.load(s.view, types.NamespacedName{Namespace: s.ingress.Namespace, Name: tls.SecretName})
	if refused != nil {
		if len(tls.Hosts) == 0 {
			s.tell(refused, "this TLS entry does nothing")
		}
		return nil
	}
	if !parsed.covers(s.name) {
		return nil
	}
	s.tellIncomplete(parsed)
	return &parsed
}

func (s *search) tellIncomplete(parsed parsedCertificate) {
	if parsed.incomplete != "" {
		s.tell(&refusal{finding.IncompleteChain, parsed.incomplete}, incompleteEffect)
	}
}

const incompleteEffect = "the certificate is shown without its issuer's, and some clients refuse it"

func (s *search) tell(why *refusal, effect string) {
	s.findings = append(s.findings, finding.Finding{
		Object: objectName(s.ingress), Field: fmt.Sprintf("spec.tls[%d].secretName", s.entry),
		Code: why.code, Message: why.message, Effect: effect,
	})
}
