// Package link connects edges to a control: who they are, by which certificates they know each other,
// and how an edge gets its own.
//
// A control is known by the DNS name ServerName, not by its address, and an edge by a URI. All
// connections are TLS 1.3, and edges open them. Who has no certificate can ask for one, and for
// nothing else. The package knows TLS and gRPC, and must not know Kubernetes, nor what is carried.
package link

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
)

// ServerName is the DNS name in a control's certificate.
const ServerName = "headgate-control"

// alpn is what gRPC needs to be negotiated.
const alpn = "h2"

// edgesURI is the URI in the certificate of an edge that has all units.
const edgesURI = "spiffe://headgate/edges"

const (
	// maxLabel and maxName are the maximum sizes of a group and of a name: those of Kubernetes.
	maxLabel = 63
	maxName  = 253
)

// An Identity says who an edge is.
type Identity struct {
	// Group is the group whose units the edge has, empty for all units.
	Group string
	// Name is for people: several edges may have one certificate of cert-manager.
	Name string
	// Account is for whose token the certificate was first got, NAMESPACE/NAME. It is empty if others
	// made the certificate.
	Account string
}

// URI is how a certificate says which group the edge is of.
func (i Identity) URI() string {
	if i.Group == "" {
		return edgesURI
	}
	return edgesURI + "/" + i.Group
}

// Validate returns an error if a certificate can't say so.
func (i Identity) Validate() error {
	if i.Group != "" && (len(i.Group) > maxLabel || !isLabel(i.Group)) {
		return fmt.Errorf("the group %q must be a label of DNS: up to %d characters a-z, 0-9 and -", i.Group, maxLabel)
	}
	if len(i.Name) > maxName {
		return fmt.Errorf("the name of the edge has more than %d characters", maxName)
	}
	if !isName(i.Name) {
		return fmt.Errorf("the name of the edge, %q, must be that of a Pod: a-z, 0-9, - and dots", i.Name)
	}
	if i.Account != "" && !isAccount(i.Account) {
		return fmt.Errorf("the account of the edge, %q, must be NAMESPACE/NAME", i.Account)
	}
	return nil
}

// isPod reports whether the certificate is of one Pod alone. A token that is not bound to a Pod has the
// name of its account, and others make certificates that many edges have.
func (i Identity) isPod() bool {
	_, name, ok := strings.Cut(i.Account, "/")
	return ok && i.Name != name
}

// isAccount reports whether a text is NAMESPACE/NAME.
func isAccount(text string) bool {
	namespace, name, _ := strings.Cut(text, "/")
	return len(namespace) <= maxLabel && isLabel(namespace) && len(name) <= maxName && isName(name)
}

// isName reports whether a text is labels with dots in between.
func isName(text string) bool {
	for label := range strings.SplitSeq(text, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

// isLabel reports whether a text has the characters of a label as in RFC 1123, in lower case.
func isLabel(text string) bool {
	for i := range len(text) {
		c := text[i]
		inside := c == '-' && i > 0 && i < len(text)-1
		if !inside && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}

// IdentityOf reads the identity in a certificate that was verified already.
func IdentityOf(c *x509.Certificate) (Identity, error) {
	if len(c.URIs) != 1 {
		return Identity{}, fmt.Errorf("the certificate has %d URIs: an edge's has one, %s or %s/GROUP", len(c.URIs), edgesURI, edgesURI)
	}
	i := Identity{Name: c.Subject.CommonName}
	uri := c.URIs[0].String()
	if uri != edgesURI {
		group, ok := strings.CutPrefix(uri, edgesURI+"/")
		if !ok || group == "" {
			return Identity{}, fmt.Errorf("the URI of the certificate is %q: an edge's is %s or %s/GROUP", uri, edgesURI, edgesURI)
		}
		i.Group = group
	}
	// Certificates that others made may have any organization.
	if organization := c.Subject.Organization; len(organization) == 1 && isAccount(organization[0]) {
		i.Account = organization[0]
	}
	if err := i.Validate(); err != nil {
		return Identity{}, fmt.Errorf("read the identity in the certificate: %w", err)
	}
	return i, nil
}

// Trust is what a control shows, trusts and signs with. It must not be changed.
type Trust struct {
	// Certificate is the control's own.
	Certificate *tls.Certificate
	// Edges are the authorities of edges' certificates.
	Edges *x509.CertPool
	// Signer signs edges' certificates. It is nil if others do.
	Signer *Authority
	// Bundle has the authorities of the control's certificate, in PEM.
	Bundle []byte
}

// A Source returns what is valid now. It is asked at each connection and request, and must not wait.
type Source func() (*Trust, error)

// verify checks that a certificate is one of an edge, and valid now.
func (t *Trust) verify(c *x509.Certificate, chain []*x509.Certificate) (Identity, error) {
	between := x509.NewCertPool()
	for _, c := range chain {
		between.AddCert(c)
	}
	_, err := c.Verify(x509.VerifyOptions{Roots: t.Edges, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return Identity{}, fmt.Errorf("the certificate of the edge is not valid now, but from %s to %s", stamp(c.NotBefore), stamp(c.NotAfter))
	}
	if err != nil {
		return Identity{}, fmt.Errorf("the certificate of the edge is not trusted: %w", err)
	}
	return IdentityOf(c)
}
