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
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/cluster/client"
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
	// requestTimeout bounds one look.
	requestTimeout = 10 * time.Second
	// again is about how long after the change of another control the next look is.
	again = 50 * time.Millisecond
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
	// reported is the last error.
	reported string
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
	for ctx.Err() == nil {
		looking, cancel := context.WithTimeout(ctx, requestTimeout)
		err := k.look(looking)
		cancel()
		wait := k.Timing.Interval
		if isOvertaken(err) {
			wait = again/2 + rand.N(again)
		} else if ctx.Err() == nil {
			k.report(err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// isOvertaken reports whether another control was faster.
func isOvertaken(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// report logs an error once.
func (k *Keeper) report(err error) {
	if err == nil {
		if k.reported != "" {
			k.Log.Info("the authority of edges can be kept again")
		}
		k.reported = ""
		return
	}
	if err.Error() == k.reported {
		return
	}
	k.reported = err.Error()
	effect := "the last authority is used"
	if k.trust.Load() == nil {
		effect = "edges can't connect"
	}
	k.Log.Error("cannot keep the authority of edges", "error", err, "effect", effect)
}

// look reads both objects and does the next thing that is to be done.
//
// The ConfigMap is read before the Secret. So a control that was stopped in between publishes no
// older certificates over newer ones: the control that published those has updated the ConfigMap, and
// the update of the version that was read here is refused.
func (k *Keeper) look(ctx context.Context) error {
	shown, unread := k.readConfigMap(ctx)
	secret, err := k.keepSecret(ctx, shown)
	if secret == nil {
		return errors.Join(err, unread)
	}
	now := time.Now()
	kept := read(secret, now)
	if kept.current == nil {
		return errors.Join(err, unread)
	}
	bundle := kept.bundle()
	if failed := k.use(kept, bundle, now); failed != nil {
		return errors.Join(err, unread, failed)
	}
	if shown != nil {
		err = errors.Join(err, k.publish(ctx, shown, bundle))
	}
	return errors.Join(err, unread)
}

// keepSecret returns the Secret as it is after what had to be changed, or as it was, with an error,
// if that was not possible.
func (k *Keeper) keepSecret(ctx context.Context, shown *configMap) (*corev1.Secret, error) {
	secrets := k.Client.Secrets(k.Name.Namespace)
	was, err := secrets.Get(ctx, k.Name.Name, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, fmt.Errorf("read the Secret %s: %w", k.Name, err)
	}
	changed := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.Name.Namespace, Name: k.Name.Name}}
	if missing {
		was = nil
	} else {
		changed = was.DeepCopy()
	}
	change, err := k.change(changed, shown)
	if err != nil || change == "" {
		return was, err
	}
	if missing {
		changed, err = secrets.Create(ctx, changed, metav1.CreateOptions{})
	} else {
		changed, err = secrets.Update(ctx, changed, metav1.UpdateOptions{})
	}
	if err != nil {
		return was, fmt.Errorf("write the Secret %s: %w", k.Name, err)
	}
	k.Log.Info("the authority of edges is "+change, "secret", k.Name)
	return changed, nil
}

// use has the control use what is kept, with a certificate of its own.
func (k *Keeper) use(kept kept, bundle []byte, now time.Time) error {
	was := k.trust.Load()
	if was != nil && bytes.Equal(was.Bundle, bundle) && was.Signer.Certificate.Equal(kept.current.Certificate) {
		own, most := was.Certificate.Leaf, kept.current.Certificate.NotAfter
		if own.NotAfter.Equal(most) || own.NotAfter.Sub(now) > serverValidity/2 {
			return nil
		}
	}
	own, err := kept.current.Server(now, serverValidity)
	if err != nil {
		return err
	}
	k.trust.Store(&link.Trust{Certificate: own, Edges: link.Pool(kept.trusted()...), Signer: kept.current, Bundle: bundle})
	k.Log.Info("the control has a certificate for edges", "secret", k.Name, "serial", own.Leaf.SerialNumber.Text(16), "until", own.Leaf.NotAfter)
	return nil
}
