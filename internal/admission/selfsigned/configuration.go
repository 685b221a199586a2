package selfsigned

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/admission/certgen"
)

// A configuration is the ValidatingWebhookConfiguration as it was read; without an object
// if there is none, so that nothing calls the webhook. It is nil if it could not be read.
type configuration struct {
	object *admissionregistrationv1.ValidatingWebhookConfiguration
	// ours are the settings of the webhooks that call the Service.
	ours []*admissionregistrationv1.WebhookClientConfig
}

func (k *Keeper) readConfiguration(ctx context.Context) (*configuration, error) {
	object, err := k.Client.ValidatingWebhookConfigurations().Get(ctx, k.Configuration, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return &configuration{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ValidatingWebhookConfiguration %s: %w", k.Configuration, err)
	}
	c := &configuration{object: object}
	for i := range object.Webhooks {
		client := &object.Webhooks[i].ClientConfig
		if called := client.Service; called != nil && k.Service == (types.NamespacedName{Namespace: called.Namespace, Name: called.Name}) {
			c.ours = append(c.ours, client)
		}
	}
	return c, nil
}

// trusts reports whether all webhooks have the authority of a certificate. Without any it does
// not: API servers may call the webhook by names that the flags do not say.
func (c *configuration) trusts(leaf *x509.Certificate) bool {
	if c == nil || len(c.ours) == 0 {
		return false
	}
	for _, client := range c.ours {
		if len(certgen.Pair{CA: client.CABundle}.Issuers(leaf)) == 0 {
			return false
		}
	}
	return true
}

// trust gives the webhooks a CA bundle, unless they have it.
func (c *configuration) trust(ctx context.Context, k *Keeper, ca []byte) error {
	if c.object == nil {
		return fmt.Errorf("there is no ValidatingWebhookConfiguration %s, so that API servers do not call the webhook", k.Configuration)
	}
	if len(c.ours) == 0 {
		return fmt.Errorf("no webhook of the ValidatingWebhookConfiguration %s calls the Service %s", k.Configuration, k.Service)
	}
	changed := false
	for _, client := range c.ours {
		if !bytes.Equal(client.CABundle, ca) {
			client.CABundle, changed = ca, true
		}
	}
	if !changed {
		return nil
	}
	_, err := k.Client.ValidatingWebhookConfigurations().Update(ctx, c.object, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("write the CA bundle of the ValidatingWebhookConfiguration %s: %w", k.Configuration, err)
	}
	k.Log.Info("the CA bundle of the admission webhook was written", "configuration", k.Configuration)
	return nil
}
