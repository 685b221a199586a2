package certgen

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/headgate/headgate/internal/cluster/client"
)

// A Patch says which objects are to trust the authorities of a Secret. They are read and
// updated, and not patched: the roles of ingress-nginx allow only that.
type Patch struct {
	Client  *client.Clients
	Dynamic dynamic.Interface
	Secret  types.NamespacedName
	// Validating, Mutating and APIService name the objects; empty for none.
	Validating, Mutating, APIService string
	// FailurePolicy is that of all webhooks; empty to leave it as it is.
	FailurePolicy admissionregistrationv1.FailurePolicyType
	Log           *slog.Logger
}

// Apply patches all objects, or as many as it can.
func (p Patch) Apply(ctx context.Context) error {
	ca, err := p.readCA(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, object := range []struct {
		kind, name string
		update     func(ctx context.Context, name string, ca []byte) error
	}{
		{"ValidatingWebhookConfiguration", p.Validating, p.validating},
		{"MutatingWebhookConfiguration", p.Mutating, p.mutating},
		{"APIService", p.APIService, p.apiService},
	} {
		if object.name == "" {
			continue
		}
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return object.update(ctx, object.name, ca) })
		if err != nil {
			failed = append(failed, fmt.Errorf("patch the %s %s: %w", object.kind, object.name, err))
			continue
		}
		p.Log.Info("patched", "kind", object.kind, "name", object.name)
	}
	return errors.Join(failed...)
}

func (p Patch) readCA(ctx context.Context) ([]byte, error) {
	secret, err := p.Client.Secrets(p.Secret.Namespace).Get(ctx, p.Secret.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no Secret %s: run create first", p.Secret)
	}
	if err != nil {
		return nil, fmt.Errorf("read the Secret: %w", err)
	}
	if ca := secret.Data[CAKey]; len(ca) > 0 {
		return ca, nil
	}
	return nil, fmt.Errorf("the Secret %s has no key %q", p.Secret, CAKey)
}

func (p Patch) validating(ctx context.Context, name string, ca []byte) error {
	return change(ctx, p.Client.ValidatingWebhookConfigurations(), name,
		func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
			for i := range c.Webhooks {
				p.set(&c.Webhooks[i].ClientConfig, &c.Webhooks[i].FailurePolicy, ca)
			}
		})
}

func (p Patch) mutating(ctx context.Context, name string, ca []byte) error {
	return change(ctx, p.Client.MutatingWebhookConfigurations(), name,
		func(c *admissionregistrationv1.MutatingWebhookConfiguration) {
			for i := range c.Webhooks {
				p.set(&c.Webhooks[i].ClientConfig, &c.Webhooks[i].FailurePolicy, ca)
			}
		})
}

// objects are those of a kind at the API server.
type objects[T any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	Update(ctx context.Context, object T, options metav1.UpdateOptions) (T, error)
}

func change[T any](ctx context.Context, of objects[T], name string, edit func(T)) error {
	object, err := of.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	edit(object)
	_, err = of.Update(ctx, object, metav1.UpdateOptions{})
	return err
}

func (p Patch) set(of *admissionregistrationv1.WebhookClientConfig, policy **admissionregistrationv1.FailurePolicyType, ca []byte) {
	of.CABundle = ca
	if p.FailurePolicy != "" {
		*policy = &p.FailurePolicy
	}
}

func (p Patch) apiService(ctx context.Context, name string, ca []byte) error {
	services := p.Dynamic.Resource(schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"})
	s, err := services.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	err = unstructured.SetNestedField(s.Object, base64.StdEncoding.EncodeToString(ca), "spec", "caBundle")
	if err != nil {
		return err
	}
	// API servers refuse one with both.
	unstructured.RemoveNestedField(s.Object, "spec", "insecureSkipTLSVerify")
	_, err = services.Update(ctx, s, metav1.UpdateOptions{})
	return err
}
