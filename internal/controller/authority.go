package controller

import "github.com/headgate/headgate/internal/source"

// What certificate authorities say is not waited for. Whoever may write a
// Secret names who is to be asked, and a certificate without it is shown as its
// owner wrote it.

func (c *Controller) wantIssuers() {
	if want := c.settings.Want.Issuers; want != nil {
		if r := c.store.DrainIssuers(); len(r.Added)+len(r.Removed) > 0 {
			want(r.Added, r.Removed)
		}
	}
}

func (c *Controller) wantStaples() {
	want := c.settings.Want.Staples
	if want == nil {
		return
	}
	added, removed := c.desired.TakeStapled()
	if len(added)+len(removed) == 0 {
		return
	}
	subjects := make([]source.Subject, len(added))
	for i, certificate := range added {
		subjects[i] = source.Subject{Name: certificate.Hash, Chain: certificate.Chain, Secret: certificate.Secret}
	}
	want(subjects, removed)
}
