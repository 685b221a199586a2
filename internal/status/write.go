package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// requestLimit limits the time of one request.
	requestLimit = 10 * time.Second
	// maxConflicts is how often a write is retried with a newer version.
	maxConflicts = 5
)

var (
	errNotLeader = errors.New("this replica is no longer the leader")
	errChanging  = errors.New("the Ingress keeps changing")
)

// write writes all Ingresses to check, until ctx ends. Unless stay is set, it
// returns when none is left or the API server does not respond. Writing an
// Ingress that failed is retried later, without delaying the others.
func (w *Writer) write(ctx context.Context, stay bool) {
	for ctx.Err() == nil {
		ing, wanted := w.next()
		if ing == nil {
			if !stay {
				return
			}
			select {
			case <-ctx.Done():
			case <-w.filled:
			}
			continue
		}
		err := w.writeOne(ctx, ing, wanted)
		if ctx.Err() != nil {
			return
		}
		leads := !errors.Is(err, errNotLeader)
		if stay {
			w.backOff(ing, err)
		}
		if err != nil && leads && w.logLimiter.TryAccept() {
			w.settings.Log.Warn("writing the status of an Ingress failed", "ingress", ing.Namespace+"/"+ing.Name, "error", err)
		}
		if !stay && err != nil && !ofIngress(err) {
			// Shutdown must not wait for an unavailable API server.
			return
		}
		if !leads {
			select {
			case <-ctx.Done():
			case <-time.After(firstPause):
			}
		}
	}
}

// ofIngress reports whether an error concerns one Ingress only.
func ofIngress(err error) bool {
	_, answered := errors.AsType[*apierrors.StatusError](err)
	return answered || errors.Is(err, errChanging)
}

// A backoff is the time after a failure in which an Ingress is not written.
type backoff struct {
	timer *time.Timer
	long  time.Duration
	over  bool
}

// backOff delays an Ingress that failed, twice as long as the last time.
func (w *Writer) backOff(ing *networkingv1.Ingress, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := nameOf(ing)
	last := w.backoffs[name]
	switch {
	case err == nil:
		w.wakeUp(name)
		return
	case w.known[name] == nil || last != nil && !last.over:
		return
	}
	now := &backoff{long: firstPause}
	if last != nil {
		now.long = min(2*last.long, longestPause)
	}
	// It may have been added again meanwhile.
	delete(w.behind, name)
	now.timer = time.AfterFunc(now.long, func() { w.endBackoff(name, now) })
	w.backoffs[name] = now
}

// endBackoff adds an Ingress to those to check again.
func (w *Writer) endBackoff(name types.NamespacedName, now *backoff) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.backoffs[name] != now {
		return
	}
	now.over = true
	if w.wanted != nil && !w.shown[name].equal(w.wanted) {
		// Not to those that appeared, which go first.
		w.behind[name] = struct{}{}
		w.wake()
	}
}

// wakeUp forgets that an Ingress failed.
func (w *Writer) wakeUp(name types.NamespacedName) {
	if r := w.backoffs[name]; r != nil {
		r.timer.Stop()
		delete(w.backoffs, name)
	}
}

// wakeAll forgets all failures.
func (w *Writer) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.backoffs {
		w.wakeUp(name)
	}
}

func nameOf(ing *networkingv1.Ingress) types.NamespacedName {
	return types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}
}

// next returns an Ingress to check and the addresses to write, or nil.
func (w *Writer) next() (*networkingv1.Ingress, addresses) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, names := range []map[types.NamespacedName]struct{}{w.appeared, w.behind} {
		for name := range names {
			delete(w.behind, name)
			delete(w.appeared, name)
			return w.known[name], w.wanted
		}
	}
	return nil, nil
}

// writeOne writes one Ingress, if the API server's newest version of it has other
// addresses. The request contains the version, so that no concurrent change is
// overwritten: neither one of the Ingress, nor the status that another leader
// wrote while this process was suspended between the check for leadership and the
// write.
func (w *Writer) writeOne(ctx context.Context, ing *networkingv1.Ingress, wanted addresses) error {
	client := w.settings.Client.NetworkingV1().Ingresses(ing.Namespace)
	for range maxConflicts {
		live, err := limited(ctx, w, func(ctx context.Context) (*networkingv1.Ingress, error) {
			return client.Get(ctx, ing.Name, metav1.GetOptions{})
		})
		if apierrors.IsNotFound(err) || err == nil && classChanged(ing, live) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the Ingress: %w", err)
		}
		if shownBy(live).equal(wanted) {
			w.note(ing, wanted)
			return nil
		}
		live.Status.LoadBalancer.Ingress = wanted.entries()
		_, err = limited(ctx, w, func(ctx context.Context) (*networkingv1.Ingress, error) {
			if !w.settings.Leads() {
				return nil, errNotLeader
			}
			return client.UpdateStatus(ctx, live, metav1.UpdateOptions{})
		})
		if !apierrors.IsConflict(err) {
			if err == nil {
				w.note(ing, wanted)
			}
			return ignoreNotFound(err)
		}
	}
	return errChanging
}

// classChanged reports whether the API server's version has left the class that
// the Ingress was selected for. It may belong to another controller then.
func classChanged(ing, live *networkingv1.Ingress) bool {
	was, is := ing.Spec.IngressClassName, live.Spec.IngressClassName
	return was != nil && (is == nil || *is != *was)
}

// limited sends a request when the rate limit allows it.
func limited[T any](ctx context.Context, w *Writer, do func(context.Context) (T, error)) (T, error) {
	if err := w.limiter.Wait(ctx); err != nil {
		var none T
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	return do(ctx)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// note records the status of an Ingress before a source reports it.
func (w *Writer) note(ing *networkingv1.Ingress, wrote addresses) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name := nameOf(ing); w.known[name] != nil {
		w.shown[name] = wrote
	}
}
