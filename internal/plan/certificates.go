package plan

import "github.com/headgate/headgate/internal/model"

// certificates are those in use, and those among them whose OCSP responses were
// requested.
type certificates struct {
	// named are those of names, and byDefault is the one of all other names.
	named     map[string]model.Certificate
	byDefault model.Certificate
	stapling  bool
	// requested are those whose responses were requested, dirty those for which that
	// may have changed since.
	requested, dirty map[string]struct{}
}

func newCertificates() certificates {
	return certificates{
		named: map[string]model.Certificate{}, requested: map[string]struct{}{}, dirty: map[string]struct{}{},
	}
}

func (c *certificates) add(certificate model.Certificate) {
	c.named[certificate.Hash] = certificate
	c.markDirty(certificate.Hash)
}

func (c *certificates) remove(hash string) {
	delete(c.named, hash)
	c.markDirty(hash)
}

func (c *certificates) setDefault(certificate model.Certificate) {
	c.markDirty(c.byDefault.Hash)
	c.byDefault = certificate
	c.markDirty(certificate.Hash)
}

func (c *certificates) markDirty(hash string) { c.dirty[hash] = struct{}{} }

func (c *certificates) setStapling(on bool) {
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
func (c *certificates) wanted(hash string) (certificate model.Certificate, ok bool) {
	if !c.stapling || hash == "" {
		return model.Certificate{}, false
	}
	if hash == c.byDefault.Hash {
		return c.byDefault, true
	}
	certificate, ok = c.named[hash]
	return certificate, ok
}

// DrainOCSPChanges returns the certificates that need an OCSP response since the last
// call, and those that no longer do.
func (d *Desired) DrainOCSPChanges() (added []model.Certificate, removed []string) {
	c := &d.shown
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
