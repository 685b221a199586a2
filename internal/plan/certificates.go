package plan

import "github.com/headgate/headgate/internal/model"

// certificates are those that are shown, and those among them whose staples
// were asked for.
type certificates struct {
	// named are those that names show, and byDefault is the one that is shown
	// where no other is.
	named     map[string]model.Certificate
	byDefault model.Certificate
	stapling  bool
	// stapled are those that were asked for, doubted those for which that may
	// have changed since.
	stapled, doubted map[string]struct{}
}

func newCertificates() certificates {
	return certificates{
		named: map[string]model.Certificate{}, stapled: map[string]struct{}{}, doubted: map[string]struct{}{},
	}
}

func (c *certificates) add(certificate model.Certificate) {
	c.named[certificate.Hash] = certificate
	c.doubt(certificate.Hash)
}

func (c *certificates) remove(hash string) {
	delete(c.named, hash)
	c.doubt(hash)
}

func (c *certificates) setDefault(certificate model.Certificate) {
	c.doubt(c.byDefault.Hash)
	c.byDefault = certificate
	c.doubt(certificate.Hash)
}

func (c *certificates) doubt(hash string) { c.doubted[hash] = struct{}{} }

// staple switches stapling on or off.
func (c *certificates) staple(on bool) {
	if on == c.stapling {
		return
	}
	c.stapling = on
	for hash := range c.named {
		c.doubt(hash)
	}
	c.doubt(c.byDefault.Hash)
}

// wanted is the certificate of that hash if it is to have a staple.
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

// TakeStapled says which certificates are to have staples since the last call,
// and which no longer.
func (d *Desired) TakeStapled() (added []model.Certificate, removed []string) {
	c := &d.shown
	for hash := range c.doubted {
		_, was := c.stapled[hash]
		switch certificate, is := c.wanted(hash); {
		case is && !was:
			c.stapled[hash] = struct{}{}
			added = append(added, certificate)
		case was && !is:
			delete(c.stapled, hash)
			removed = append(removed, hash)
		}
	}
	clear(c.doubted)
	return added, removed
}
