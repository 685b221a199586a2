package servername

import (
	"github.com/headgate/headgate/internal/build/spec"
	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
)

// twin builds a name that is nothing but the twin of a host: requests for it
// are sent there. It shows the certificate of the host only if that is for the
// twin too.
func (b *Builder) twin(name string, v View) (n model.Name, certificate *model.Certificate, found bool) {
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

// twinsLost are the findings of those Ingresses that claim a twin which is
// somebody's already.
func (b *Builder) twinsLost(name, winner string, v View) []finding.Finding {
	var fs []finding.Finding
	for _, ing := range v.RedirectAliases(name) {
		fs = append(fs, finding.Finding{
			Object: spec.ObjectName(ing), Field: b.settings.Annotation(b.settings.Claims(ing, v).WWWBy), Code: finding.Conflict,
			Message: "the name " + feature.Shorten(name) + " is taken by " + winner, Effect: "it is not redirected",
		})
	}
	return fs
}
