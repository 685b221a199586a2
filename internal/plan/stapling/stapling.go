// Package stapling says which certificates need OCSP responses: those that are shown, with a
// setting.
//
// It must not know where responses come from.
package stapling

import "github.com/headgate/headgate/internal/model"

// Certificates are those that are shown, and those among them whose OCSP responses were requested.
type Certificates struct {
	// named are those of names, by their hashes, and byDefault is the one of all other names.
	named     map[string]model.Certificate
	byDefault model.Certificate
	stapling  bool
	// requested are those whose responses were requested, dirty those for which that
	// may have changed since.
	requested, dirty map[string]struct{}
}

// New has no certificates.
func New() *Certificates {
	return &Certificates{
		named: map[string]model.Certificate{}, requested: map[string]struct{}{}, dirty: map[string]struct{}{},
	}
}

// Add adds one that is shown.
func (c *Certificates) Add(certificate model.Certificate) {
	c.named[certificate.Hash] = certificate
	c.markDirty(certificate.Hash)
}

// Remove removes one that is not shown any more.
func (c *Certificates) Remove(hash string) {
	delete(c.named, hash)
	c.markDirty(hash)
}

// SetDefault sets the certificate of names without one, the zero value if there is none.
func (c *Certificates) SetDefault(certificate model.Certificate) {
	c.markDirty(c.byDefault.Hash)
	c.byDefault = certificate
	c.markDirty(certificate.Hash)
}

func (c *Certificates) markDirty(hash string) { c.dirty[hash] = struct{}{} }

// SetStapling sets whether OCSP responses are sent.
func (c *Certificates) SetStapling(on bool) {
	if on == c.stapling {
		return
	}
	c.stapling = on
	for hash := range c.named {
		c.markDirty(hash)
	}
	c.markDirty(c.byDefault.Hash)
}

// wanted is the certificate of that hash if it needs an OCSP response.
func (c *Certificates) wanted(hash string) (certificate model.Certificate, ok bool) {
	if !c.stapling || hash == "" {
		return model.Certificate{}, false
	}
	if hash == c.byDefault.Hash {
		return c.byDefault, true
	}
	certificate, ok = c.named[hash]
	return certificate, ok
}

// Drain returns the certificates that need an OCSP response since the last call, and the hashes of
// those that no longer do.
func (c *Certificates) Drain() (added []model.Certificate, removed []string) {
	for hash := range c.dirty {
		_, was := c.requested[hash]
		switch certificate, is := c.wanted(hash); {
		case is && !was:
			c.requested[hash] = struct{}{}
			added = append(added, certificate)
		case was && !is:
			delete(c.requested, hash)
			removed = append(removed, hash)
		}
	}
	clear(c.dirty)
	return added, removed
}
