package certgen

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/headgate/headgate/internal/cluster/client"
)

// CAKey is the key of a Secret with the authorities.
const CAKey = "ca"

// Keys are the keys of a Secret with the certificate and its private key.
type Keys struct{ Certificate, Key string }

// DefaultKeys are those of ingress-nginx.
var DefaultKeys = Keys{Certificate: "cert", Key: "key"}

// Pair is what a Secret has.
func (k Keys) Pair(s *corev1.Secret) Pair {
	return Pair{CA: s.Data[CAKey], Certificate: s.Data[k.Certificate], Key: s.Data[k.Key]}
}

// Put writes a pair into a Secret, and leaves other keys alone.
func (k Keys) Put(s *corev1.Secret, p Pair) {
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	s.Data[CAKey], s.Data[k.Certificate], s.Data[k.Key] = p.CA, p.Certificate, p.Key
}

// A Request asks for a Secret with a certificate.
type Request struct {
	Client *client.Clients
	Secret types.NamespacedName
	Keys   Keys
	// Names are the DNS names and IP addresses of the certificate.
	Names []string
	// RotateBefore renews a certificate that expires within that time; 0 renews none.
	RotateBefore time.Duration
	Now          func() time.Time
	Log          *slog.Logger
}

// Create creates the Secret. One that exists stays as it is, except for a renewal, also if
// another process creates it at the same moment.
func (r Request) Create(ctx context.Context) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return r.create(ctx) })
}

func (r Request) create(ctx context.Context) error {
	secrets := r.Client.Secrets(r.Secret.Namespace)
	present, err := secrets.Get(ctx, r.Secret.Name, metav1.GetOptions{})
	if err == nil {
		return r.renew(ctx, present)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read the Secret: %w", err)
	}
	pair, err := r.newPair()
	if err != nil {
		return err
	}
	created := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Secret.Namespace, Name: r.Secret.Name}}
	r.Keys.Put(created, pair)
	if _, err := secrets.Create(ctx, created, metav1.CreateOptions{}); err != nil {
		if apierrors.IsAlreadyExists(err) {
			r.Log.Info("another process has created the Secret", "secret", r.Secret)
			return nil
		}
		return fmt.Errorf("create the Secret: %w", err)
	}
	r.Log.Info("created the Secret with a certificate", "secret", r.Secret, "names", r.Names)
	return nil
}

func (r Request) newPair() (Pair, error) {
	now := r.Now()
	return New(r.Names, now, now.AddDate(Validity, 0, 0))
}

// renew renews the certificate of a Secret if that was asked for and it expires soon.
func (r Request) renew(ctx context.Context, s *corev1.Secret) error {
	if len(s.Data[CAKey]) == 0 {
		return fmt.Errorf("the Secret %s has no key %q: delete it, or choose another name", r.Secret, CAKey)
	}
	if r.RotateBefore <= 0 {
		r.Log.Info("the Secret exists", "secret", r.Secret)
		return nil
	}
	old := r.Keys.Pair(s)
	served, err := old.Read()
	if err != nil {
		return fmt.Errorf("the certificate of the Secret %s can't be renewed: %w", r.Secret, err)
	}
	if until := served.Leaf.NotAfter; until.Sub(r.Now()) >= r.RotateBefore {
		r.Log.Info("the Secret exists, and its certificate is not renewed yet", "secret", r.Secret, "until", until)
		return nil
	}
	pair, err := r.newPair()
	if err != nil {
		return err
	}
	r.Keys.Put(s, pair.After(old))
	if _, err := r.Client.Secrets(s.Namespace).Update(ctx, s, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("renew the certificate of the Secret: %w", err)
	}
	r.Log.Info("renewed the certificate of the Secret", "secret", r.Secret, "names", r.Names)
	return nil
}
