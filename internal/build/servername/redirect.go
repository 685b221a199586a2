package servername

import (
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// redirectAlias builds a name that is nothing but the www redirect alias of a host:
// requests for it are sent there. It shows the certificate of the host only if
// that is for the alias too.
func (b *Builder) redirectAlias(name string, v View) (n model.Name, certificate *model.Certificate, found bool) {
	host, ok := spec.RedirectAlias(name)
	if !ok || len(v.RedirectAliases(name)) == 0 {
		return model.Name{}, nil, false
	}
	n = model.Name{Name: name, Host: host, Redirect: true}
	if parsed := b.hostCertificate(host, v); parsed != nil && parsed.Covers(name) {
		n.HasTLS, n.Certificate, certificate = true, parsed.Certificate.Hash, parsed.Certificate
	}
	return n, certificate, true
}

// redirectAliasesLost are the findings of those Ingresses that claim a www
// redirect alias which is taken.
func (b *Builder) redirectAliasesLost(name, winner string, v View) []finding.Finding {
	var fs []finding.Finding
	for _, ing := range v.RedirectAliases(name) {
		fs = append(fs, finding.Finding{
			Object: spec.ObjectName(ing), Field: b.settings.Annotation(b.settings.Claims(ing, v).WWWBy), Code: finding.Conflict,
			Message: "the name " + feature.Shorten(name) + " is taken by " + winner, Effect: "it is not redirected",
		})
	}
	return fs
}
