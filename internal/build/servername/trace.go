package servername

import (
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/certificate"
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/pcre"
)

// A Trace is whose a name is and why.
type Trace struct {
	// Rules are the Ingresses that name it in a rule, the oldest first, and Alias the
	// one whose alias it is otherwise.
	Rules []*networkingv1.Ingress
	Alias *networkingv1.Ingress
	// RedirectAlias is set where the name is only the www redirect alias of a host.
	RedirectAlias bool
	// Lost are the Ingresses that claim the name as an alias and don't get it.
	Lost []*networkingv1.Ingress
	// Certificate says what decided on it, nil where nothing asks for TLS on the name.
	Certificate *CertificateTrace
}

// A CertificateTrace is the entry of an Ingress's spec.tls that decides on a
// name's certificate.
type CertificateTrace struct {
	Ingress *networkingv1.Ingress
	// Entry is its number.
	Entry int
	// Host is the one whose certificate the name has.
	Host string
	// Listed is set where the entry lists the host, instead of covering it.
	Listed bool
	// Secret is empty where the entry names none.
	Secret types.NamespacedName
	// Refused says why the default certificate is shown instead, nil if it is not.
	Refused *finding.Finding
}

// TraceName builds a name as Name does, and says whose it is.
func (b *Builder) TraceName(name string, v View) (n model.Name, trace Trace, found bool, fs []finding.Finding) {
	n, _, found, fs = b.Name(name, v)
	return n, b.traceName(name, v), found, fs
}

func (b *Builder) traceName(name string, v View) Trace {
	trace := Trace{Rules: spec.OldestFirst(v.Ingresses(name))}
	if name == model.DefaultHost {
		return trace
	}
	host := name
	if len(trace.Rules) == 0 {
		var n model.Name
		n, _, trace.Alias, _ = b.alias(name, v)
		if trace.Alias == nil {
			n, _, trace.RedirectAlias = b.redirectAlias(name, v)
		}
		host = n.Host
	}
	for _, ing := range spec.OldestFirst(v.Claimants(name)) {
		if ing != trace.Alias && !slices.Contains(trace.Rules, ing) {
			trace.Lost = append(trace.Lost, ing)
		}
	}
	if len(trace.Rules) > 0 || trace.Alias != nil || trace.RedirectAlias {
		parsed, s := b.hostCertificate(host, v)
		if trace.Alias != nil {
			if of, own := b.aliasCertificate(name, trace.Alias, b.naming(trace.Alias, v), v); own != nil {
				parsed, s, host = of, own, name
			}
		}
		trace.Certificate = traceOf(parsed, s, host)
	}
	return trace
}

// traceOf says what a search found for a host, and parsed is the certificate of it.
func traceOf(parsed *certificate.Parsed, s *search, host string) *CertificateTrace {
	if s == nil {
		return nil
	}
	entry := s.ingress.Spec.TLS[s.entry]
	trace := &CertificateTrace{Ingress: s.ingress, Entry: s.entry, Host: host, Listed: slices.ContainsFunc(entry.Hosts, s.isName)}
	if entry.SecretName != "" {
		trace.Secret = types.NamespacedName{Namespace: s.ingress.Namespace, Name: entry.SecretName}
	}
	if n := len(s.findings); parsed == nil && n > 0 {
		trace.Refused = &s.findings[n-1]
	}
	return trace
}

// An AliasTrace is an alias that stands for more than one name.
type AliasTrace struct {
	// Text is the alias as it is claimed, in lower case if it is not an expression.
	Text string
	// Unit is the name that its unit has.
	Unit model.Name
	Trace
}

// TraceAliases are the aliases for more than one name that stand for this one,
// and whose each is. The list is sorted by the aliases, without those that
// no Ingress gets.
func (b *Builder) TraceAliases(name string, v View) (traces []AliasTrace) {
	aliases := slices.Sorted(slices.Values(v.PatternAliases()))
	if slices.ContainsFunc(aliases, func(alias string) bool { return model.KindOfAlias(alias) == model.Regex }) {
		b.NamePatterns(v) // and with them the expressions
	}
	for _, alias := range aliases {
		text := alias
		if model.KindOfAlias(alias) == model.Regex {
			text = b.expressions[alias]
		}
		if !standsFor(text, name) || len(v.Ingresses(alias)) > 0 {
			continue
		}
		n, _, owner, _ := b.alias(alias, v)
		if owner == nil {
			continue
		}
		n.Name = text
		traces = append(traces, AliasTrace{Text: alias, Unit: n, Trace: b.traceName(alias, v)})
	}
	return traces
}

// standsFor reports whether an alias, with the text that its unit has, stands for
// a name as the router finds.
func standsFor(text, name string) bool {
	switch model.KindOfAlias(text) {
	case model.LeadingWildcard:
		return strings.HasSuffix(name, text[1:]) && len(name) >= len(text)
	case model.TrailingWildcard:
		return strings.HasPrefix(name, text[:len(text)-1]) && len(name) >= len(text)
	case model.Regex:
		pattern, err := pcre.Load(strings.TrimPrefix(text, "~"), pcre.Options{Caseless: true})
		if err != nil {
			return false
		}
		matches, err := pattern.Match(name)
		return err == nil && matches
	}
	return false
}
