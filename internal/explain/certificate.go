package explain

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/servername"
	"github.com/headgate/headgate/internal/explain/report"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/router"
	"github.com/headgate/headgate/internal/unit"
)

// explainCertificate finds the certificate that is shown to a client that sends
// the URL's name in the handshake.
func (x *explainer) explainCertificate() {
	c := &report.Certificate{}
	x.out.Certificate = c
	name := x.out.Request.TLSName
	switch {
	case x.passedThrough() != "":
		c.Why = "TLS connections for the host are passed through, and the backend shows its own"
		return
	case x.rejected:
		c.Why = x.whyRejected()
		return
	case name == "":
		c.Default, c.Why = true, "the client sends no server name"
		x.explainDefault(c)
		return
	}
	shown, secured := x.router.Certificate(name)
	defer x.explainDefault(c)
	trace := x.certificateTrace(name, shown, secured)
	if trace != nil {
		c.Ingress = x.ingress(trace.Ingress)
		c.Field = fmt.Sprintf("spec.tls[%d]", trace.Entry)
		if trace.Secret.Name != "" {
			c.Secret = "secret/" + trace.Secret.String()
			x.involve(c.Secret)
		}
	}
	switch {
	case !secured && trace == nil && x.foreignCovering(name):
		c.Default, c.Why = true, "no Ingress with the name has a TLS section for it, and the wildcard above it belongs to another namespace"
	case !secured && trace == nil:
		c.Default, c.Why = true, "no Ingress with the name has a TLS section for it"
	case trace == nil:
		c.Default, c.Why = true, "no TLS section lists the name, and no certificate of one is valid for it"
	case trace.Refused != nil:
		c.Default, c.Why = true, trace.Refused.Message
	case !secured || shown.Certificate == "" && trace.Secret.Name != "":
		c.Default, c.Why = true, fmt.Sprintf("the certificate of host %s is not valid for %s", trace.Host, name)
	case trace.Secret.Name == "":
		c.Default, c.Why = true, "the TLS section names no Secret"
	default:
		x.shownCertificate(c, name, shown, trace)
	}
}

// foreignCovering reports whether the wildcard above a name has a certificate that is
// not shown for it, because the two belong to different namespaces.
func (x *explainer) foreignCovering(name string) bool {
	owner := x.Store.Owner(name).Ingress
	above, _ := x.Store.Covering(name)
	return x.Store.OwnHosts() && owner != nil && above != nil && above.Namespace != owner.Namespace
}

// explainDefault finds the origin of the default certificate, if it is shown.
func (x *explainer) explainDefault(c *report.Certificate) {
	from := x.Store.DefaultCertificate()
	if !c.Default || from.Name == "" {
		return
	}
	x.involve("secret/" + from.String())
	certificate, findings := x.Builder.DefaultCertificate(x.Store)
	if certificate == nil {
		c.Problem = "Headgate generated it, because --default-ssl-certificate is unusable"
		for _, f := range findings {
			c.Problem += ": " + f.Message
		}
		return
	}
	c.DefaultSecret = "secret/" + from.String()
	x.keep(unit.FromCertificate(model.DefaultCertificate, "", *certificate))
	x.keepOCSPResponse(certificate.Hash)
	x.describe(c, from)
}

// keepOCSPResponse adds the OCSP response of a certificate to the units, if it
// has one.
func (x *explainer) keepOCSPResponse(hash string) {
	if response, found, _ := x.Builder.OCSPResponse(hash, x.Store); found {
		x.keep(unit.FromOCSPResponse(response))
	}
}

// certificateTrace is the trace of the certificate of the name. An alias without
// a certificate has that of its host.
func (x *explainer) certificateTrace(name string, shown router.Name, secured bool) *servername.CertificateTrace {
	if !secured {
		var err error
		if shown, err = x.router.Name(name); err != nil {
			return nil
		}
	}
	for _, a := range x.Builder.TraceAliases(name, x.Store) {
		if a.Unit.Name == shown.Name.Name {
			return a.Certificate
		}
	}
	_, trace, _, _ := x.Builder.TraceName(shown.Name.Name, x.Store)
	return trace.Certificate
}

func (x *explainer) shownCertificate(c *report.Certificate, name string, shown router.Name, trace *servername.CertificateTrace) {
	c.Why = "the TLS section lists " + trace.Host
	if !trace.Listed {
		c.Why = fmt.Sprintf("no TLS section lists %s, and the certificate of this one is valid for it", trace.Host)
	}
	if own, err := x.router.Name(name); err == nil && own.Name.Name != shown.Name.Name {
		c.Why = fmt.Sprintf("%s has no certificate of its own; %s", name, c.Why)
	}
	if _, certificate, found, _ := x.Builder.Name(shown.Name.Name, x.Store); found && certificate != nil {
		x.keep(unit.FromCertificate("", "", *certificate))
		x.keepOCSPResponse(certificate.Hash)
	}
	x.describe(c, trace.Secret)
}

// describe describes the certificate in a Secret.
func (x *explainer) describe(c *report.Certificate, secret types.NamespacedName) {
	name := x.out.Request.TLSName
	leaf := leafOf(x.Store.Secret(secret))
	if leaf == nil {
		return
	}
	c.Names = slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		c.Names = append(c.Names, ip.String())
	}
	if len(c.Names) == 0 && leaf.Subject.CommonName != "" {
		c.Names = []string{leaf.Subject.CommonName}
	}
	c.NotBefore, c.NotAfter = &leaf.NotBefore, &leaf.NotAfter
	switch {
	case x.Now.After(leaf.NotAfter):
		c.Problem = "it expired on " + day(leaf.NotAfter) + ", and is still served"
	case x.Now.Before(leaf.NotBefore):
		c.Problem = "it is not valid before " + day(leaf.NotBefore)
	case name != "" && leaf.VerifyHostname(name) != nil:
		c.Problem = fmt.Sprintf("it is valid for %s, not for %s", strings.Join(c.Names, ", "), name)
	}
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

func leafOf(secret *corev1.Secret) *x509.Certificate {
	if secret == nil {
		return nil
	}
	for rest := secret.Data[corev1.TLSCertKey]; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil
		}
		if block.Type == "CERTIFICATE" {
			leaf, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil
			}
			return leaf
		}
	}
}
