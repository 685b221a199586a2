// Package authority keeps the authority that signs the certificates of edges: in a Secret, with its
// certificates in a ConfigMap for edges to trust. It also reviews the tokens of edges.
//
// All controls do the same at once. The Secret and the ConfigMap are all that they share, and an
// update of an older version of either is refused. What certificates are used for is for package link.
package authority

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/cluster/client"
	"github.com/headgate/headgate/internal/cluster/kept"
	"github.com/headgate/headgate/internal/unit/link"
)

const (
	// Validity is how long an authority is valid, and RenewBefore how long before its end it is renewed.
	Validity    = 10 * 365 * 24 * time.Hour
	RenewBefore = 365 * 24 * time.Hour
	// Delay is how long edges can read the next authority before it signs: kubelets write the ConfigMap
	// into Pods after up to two minutes.
	Delay = 10 * time.Minute
	// Interval is the time between two looks at the objects.
	Interval = 5 * time.Second

	// serverValidity is how long a control's own certificate is valid. It gets another one after half of that.
	serverValidity = 7 * 24 * time.Hour
)

// Settings name the objects.
type Settings struct {
	Client *client.Clients
	// Name is that of the Secret and of the ConfigMap. They are created if they are missing.
	Name   types.NamespacedName
	Timing Timing
	Log    *slog.Logger
}

// Timing are the constants of the same names; others in tests.
type Timing struct{ Validity, RenewBefore, Delay, Interval time.Duration }

// DefaultTiming are the constants.
func DefaultTiming() Timing { return Timing{Validity, RenewBefore, Delay, Interval} }

// A Keeper keeps the authority of one Secret.
type Keeper struct {
	Settings
	trust atomic.Pointer[link.Trust]
	// waiting is the certificate of the next authority, in PEM, and published is since when this control
	// knows that it is in the ConfigMap.
	waiting   []byte
	published time.Time
}

// New makes a Keeper that has no authority before Run.
func New(s Settings) *Keeper { return &Keeper{Settings: s} }

var errNone = errors.New("the control has no authority for edges yet")

// Trust is what the control shows, trusts and signs with. It is a [link.Source].
func (k *Keeper) Trust() (*link.Trust, error) {
	if trust := k.trust.Load(); trust != nil {
		return trust, nil
	}
	return nil, errNone
}

// Run keeps the authority until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	loop := kept.Loop{Look: k.look, Interval: k.Timing.Interval, What: "the authority of edges", Effect: k.effect, Log: k.Log}
	loop.Run(ctx)
}

// effect is that of an error.
func (k *Keeper) effect() string {
	if k.trust.Load() == nil {
		return "edges can't connect"
	}
	return "the last authority is used"
}

// look reads both objects and does the next thing that is to be done.
//
// The ConfigMap is read before the Secret. So a control that was stopped in between publishes no
// older certificates over newer ones: the control that published those has updated the ConfigMap, and
// the update of the version that was read here is refused.
func (k *Keeper) look(ctx context.Context) error {
	shown, unread := k.readConfigMap(ctx)
	secret, change, err := kept.Secret(ctx, k.Client, k.Name, func(s *corev1.Secret) (string, error) { return k.change(s, shown) })
	if change != "" {
		k.Log.Info("the authority of edges is "+change, "secret", k.Name)
	}
	if secret == nil {
		return errors.Join(err, unread)
	}
	now := time.Now()
	has := read(secret, now)
	if has.current == nil {
		return errors.Join(err, unread)
	}
	bundle := has.bundle()
	if failed := k.use(has, bundle, now); failed != nil {
		return errors.Join(err, unread, failed)
	}
	if shown != nil {
		err = errors.Join(err, k.publish(ctx, shown, bundle))
	}
	return errors.Join(err, unread)
}

// use has the control use what is kept, with a certificate of its own.
func (k *Keeper) use(has contents, bundle []byte, now time.Time) error {
	was := k.trust.Load()
	if was != nil && bytes.Equal(was.Bundle, bundle) && was.Signer.Certificate.Equal(has.current.Certificate) {
		own, most := was.Certificate.Leaf, has.current.Certificate.NotAfter
		if own.NotAfter.Equal(most) || own.NotAfter.Sub(now) > serverValidity/2 {
			return nil
		}
	}
	own, err := has.current.Server(now, serverValidity)
	if err != nil {
		return err
	}
	k.trust.Store(&link.Trust{Certificate: own, Edges: link.Pool(has.trusted()...), Signer: has.current, Bundle: bundle})
	k.Log.Info("the control has a certificate for edges", "secret", k.Name, "serial", own.Leaf.SerialNumber.Text(16), "until", own.Leaf.NotAfter)
	return nil
}
