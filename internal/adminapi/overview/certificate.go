package overview

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/model"
)

// A certificateID is one certificate in one Secret, whose name is empty if Headgate made it.
type certificateID struct{ secret, hash string }

// A certificate is what is kept of one: no bytes of it.
type certificate struct {
	notBefore, notAfter time.Time
	issuer              string
	names               []string // that it is for
	shownFor            map[string]struct{}
}

// A Certificate is one in short.
type Certificate struct {
	// Secret is where it is, empty if Headgate made it.
	Secret string `json:"secret,omitempty"`
	// Hash is that of its content.
	Hash      string     `json:"hash"`
	NotBefore *time.Time `json:"not_before,omitempty"`
	NotAfter  *time.Time `json:"not_after,omitempty"`
	Issuer    string     `json:"issuer,omitempty"`
	// Names are those that it is for, and ShownFor those that show it.
	Names    Few `json:"names"`
	ShownFor Few `json:"shown_for"`
	// Default: names without a certificate of their own show it.
	Default bool `json:"default,omitempty"`
}

// Certificates are those whose Secrets or names have the text, the first to expire first. With
// Problems, they are those that expire before a time.
func (t *Table) Certificates(q Query, before time.Time) Page[Certificate] {
	t.mu.Lock()
	defer t.mu.Unlock()
	ids := slices.SortedFunc(maps.Keys(t.certificates), func(a, b certificateID) int {
		return cmp.Or(t.certificates[a].notAfter.Compare(t.certificates[b].notAfter), cmp.Compare(a.secret, b.secret), cmp.Compare(a.hash, b.hash))
	})
	var found []certificateID
	for _, id := range ids {
		c := t.certificates[id]
		if (!q.Problems || c.notAfter.Before(before)) && (q.has(id.secret) || q.has(c.names...) || c.isShownFor(q)) {
			found = append(found, id)
		}
	}
	part := Part(found, q)
	p := Page[Certificate]{Items: []Certificate{}, Total: part.Total}
	for _, id := range part.Items {
		shown := t.certificates[id].show(id)
		shown.Default = id == t.fallback
		p.Items = append(p.Items, shown)
	}
	return p
}

func (c *certificate) isShownFor(q Query) bool {
	for name := range c.shownFor {
		if q.has(name) {
			return true
		}
	}
	return false
}

func (c *certificate) show(id certificateID) Certificate {
	shown := Certificate{Secret: id.secret, Hash: id.hash, Issuer: c.issuer, Names: few(c.names), ShownFor: few(slices.Sorted(maps.Keys(c.shownFor)))}
	if !c.notAfter.IsZero() {
		shown.NotBefore, shown.NotAfter = &c.notBefore, &c.notAfter
	}
	return shown
}

// hold notes that a name shows a certificate. Nothing but its names and dates is kept.
func (t *Table) hold(m *model.Certificate, key string) certificateID {
	if m.Hash == "" {
		return certificateID{}
	}
	id := certificateID{m.Secret, m.Hash}
	if t.certificates[id] == nil {
		t.certificates[id] = parse(m.Chain)
	}
	t.certificates[id].shownFor[key] = struct{}{}
	return id
}

// release notes that a name no longer shows a certificate.
func (t *Table) release(id certificateID, key string) {
	c := t.certificates[id]
	if c == nil {
		return
	}
	if delete(c.shownFor, key); len(c.shownFor) == 0 {
		delete(t.certificates, id)
	}
}

// maxCertificateNames is how many names of a certificate can be searched.
const maxCertificateNames = 100

func parse(chain []byte) *certificate {
	c := &certificate{shownFor: map[string]struct{}{}}
	block, _ := pem.Decode(chain)
	if block == nil {
		return c
	}
	read, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return c
	}
	c.notBefore, c.notAfter = read.NotBefore.UTC(), read.NotAfter.UTC()
	c.issuer = text(cmp.Or(read.Issuer.CommonName, strings.Join(read.Issuer.Organization, ", ")))
	names := slices.Clone(read.DNSNames)
	for _, address := range read.IPAddresses {
		names = append(names, address.String())
	}
	if len(names) == 0 && read.Subject.CommonName != "" {
		names = append(names, read.Subject.CommonName)
	}
	for _, name := range names[:min(len(names), maxCertificateNames)] {
		c.names = append(c.names, text(name))
	}
	return c
}

// text bounds what a tenant wrote into a certificate.
func text(s string) string {
	const longest = 256
	return strings.ToValidUTF8(strings.Clone(s[:min(len(s), longest)]), "\uFFFD")
}
