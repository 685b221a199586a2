package controller

import "github.com/headgate/headgate/internal/source"

// The controller does not wait for certificate authorities. Anyone with write
// access to Secrets decides which authority is contacted. Without its response,
// the certificate is served as it is in the Secret.

func (c *Controller) subscribeIssuers() {
	if want := c.settings.Subscriptions.Issuers; want != nil {
		if r := c.store.DrainIssuers(); len(r.Added)+len(r.Removed) > 0 {
			want(r.Added, r.Removed)
		}
	}
}

func (c *Controller) subscribeOCSPResponses() {
	want := c.settings.Subscriptions.OCSPResponses
	if want == nil {
		return
	}
	added, removed := c.desired.DrainOCSPChanges()
	if len(added)+len(removed) == 0 {
		return
	}
	subjects := make([]source.Subject, len(added))
	for i, certificate := range added {
		subjects[i] = source.Subject{Name: certificate.Hash, Chain: certificate.Chain, Secret: certificate.Secret}
	}
	want(subjects, removed)
}
