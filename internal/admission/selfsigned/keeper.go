// Package selfsigned keeps the certificate of the admission webhook in a Secret: it makes
// it, renews it, and has API servers trust it.
//
// All replicas do the same at once. The Secret and the ValidatingWebhookConfiguration are
// all that they share, and an update of an older version of either is refused.
package selfsigned

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/admission/certgen"
	"github.com/headgate/headgate/internal/cluster/client"
	"github.com/headgate/headgate/internal/cluster/kept"
)

const (
	// Validity is how long a certificate is valid, and RenewBefore how long before its end
	// it is renewed.
	Validity    = 365 * 24 * time.Hour
	RenewBefore = 90 * 24 * time.Hour
	// Delay is how long API servers trust a new certificate before it is served: they
	// learn of a change of the configuration with a delay.
	Delay = 30 * time.Second
	// Interval is the time between two looks at the objects.
	Interval = 5 * time.Second
)

// Settings name the objects.
type Settings struct {
	Client *client.Clients
	// Secret has the certificate. It is created if it is missing.
	Secret types.NamespacedName
	// Configuration is the name of the ValidatingWebhookConfiguration, and Service what
	// those of its webhooks call that get the CA bundle.
	Configuration string
	Service       types.NamespacedName
	Timing        Timing
	Log           *slog.Logger
}

// Timing are the constants of the same names; others in tests.
type Timing struct{ Validity, RenewBefore, Delay, Interval time.Duration }

// DefaultTiming are the constants.
func DefaultTiming() Timing { return Timing{Validity, RenewBefore, Delay, Interval} }

// A Keeper keeps the certificate of one Secret.
type Keeper struct {
	Settings
	served atomic.Pointer[tls.Certificate]
	// shown is served in PEM.
	shown []byte
	// waiting is the certificate that is to be served next, and trusted is since when this
	// replica knows that the configuration has its authority.
	waiting []byte
	trusted time.Time
}

// New makes a Keeper that knows no certificate before Run.
func New(s Settings) *Keeper { return &Keeper{Settings: s} }

var errNone = errors.New("the admission webhook has no certificate yet")

// Certificate is the certificate to serve, for [tls.Config].
func (k *Keeper) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if served := k.served.Load(); served != nil {
		return served, nil
	}
	return nil, errNone
}

// Run keeps the certificate until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	loop := kept.Loop{Look: k.look, Interval: k.Timing.Interval, What: "the certificate of the admission webhook", Effect: k.effect, Log: k.Log}
	loop.Run(ctx)
}

// effect is that of an error.
func (k *Keeper) effect() string {
	if k.served.Load() == nil {
		return "API servers can't connect to the webhook"
	}
	return "the last certificate is served"
}

// look reads both objects and does the next thing that is to be done.
//
// The configuration is read before the Secret. So a replica that was stopped in between
// writes no older CA bundle over a newer one: the replica that wrote that has updated the
// configuration, and the update of the version that was read here is refused.
func (k *Keeper) look(ctx context.Context) error {
	c, unread := k.readConfiguration(ctx)
	secret, change, err := kept.Secret(ctx, k.Client, k.Secret, func(s *corev1.Secret) (string, error) { return k.change(s, c) })
	if change != "" {
		k.Log.Info("the certificate of the admission webhook is "+change, "secret", k.Secret)
	}
	if secret != nil && k.serve(secret) && c != nil {
		err = errors.Join(err, c.trust(ctx, k, secret.Data[certgen.CAKey]))
	}
	return errors.Join(err, unread)
}

// serve serves the certificate of the Secret, if it has one.
func (k *Keeper) serve(secret *corev1.Secret) bool {
	pair := certgen.DefaultKeys.Pair(secret)
	served, err := pair.Read()
	if err != nil {
		return false
	}
	if bytes.Equal(pair.Certificate, k.shown) {
		return true
	}
	k.served.Store(served)
	k.shown = pair.Certificate
	k.Log.Info("the admission webhook serves a certificate", "secret", k.Secret, "serial", served.Leaf.SerialNumber.Text(16), "until", served.Leaf.NotAfter)
	return true
}
