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
	// requestLimit bounds one request.
	requestLimit = 10 * time.Second
	// mostConflicts is how often a write is tried on a newer version.
	mostConflicts = 5
)

var (
	errNotLeader = errors.New("this replica is no longer the leader")
	errChanging  = errors.New("it was changed again and again")
)

// write writes what is behind, until ctx ends, or, if it is not to stay, until
// nothing is left or the API server does not answer. An Ingress that could not
// be written rests, and the others go on.
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
			w.rest(ing, err)
		}
		if err != nil && leads && w.tell.TryAccept() {
			w.settings.Log.Warn("write the status of an Ingress", "ingress", ing.Namespace+"/"+ing.Name, "error", err)
		}
		if !stay && err != nil && !ofIngress(err) {
			// The end of the process is not to wait for an API server that is away.
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

// ofIngress tells whether others may be written where one failed so.
func ofIngress(err error) bool {
	_, answered := errors.AsType[*apierrors.StatusError](err)
	return answered || errors.Is(err, errChanging)
}

// A rest is the time after a failure in which an Ingress is left alone.
type rest struct {
	timer *time.Timer
	long  time.Duration
	over  bool
}

// rest leaves an Ingress alone for a while if it failed, twice as long as the
// last time.
func (w *Writer) rest(ing *networkingv1.Ingress, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := nameOf(ing)
	last := w.resting[name]
	switch {
	case err == nil:
		w.wakeUp(name)
		return
	case w.known[name] == nil || last != nil && !last.over:
		return
	}
	now := &rest{long: firstPause}
	if last != nil {
		now.long = min(2*last.long, longestPause)
	}
	// Somebody else may have put it back meanwhile.
	delete(w.behind, name)
	now.timer = time.AfterFunc(now.long, func() { w.rested(name, now) })
	w.resting[name] = now
}

// rested looks at an Ingress again.
func (w *Writer) rested(name types.NamespacedName, now *rest) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.resting[name] != now {
		return
	}
	now.over = true
	if w.wanted != nil && !w.shown[name].equal(w.wanted) {
		// Not among those that appeared: these go first.
		w.behind[name] = struct{}{}
		w.wake()
	}
}

// wakeUp forgets that an Ingress failed.
func (w *Writer) wakeUp(name types.NamespacedName) {
	if r := w.resting[name]; r != nil {
		r.timer.Stop()
		delete(w.resting, name)
	}
}

// wakeAll forgets that any failed.
func (w *Writer) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.resting {
		w.wakeUp(name)
	}
}

func nameOf(ing *networkingv1.Ingress) types.NamespacedName {
	return types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}
}

// next takes an Ingress that is behind, nil if none is, and what it is to show.
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

// writeOne writes one Ingress, if the API server's newest version of it shows
// something else. The version goes with it, so that what somebody else wrote
// in between is not overwritten: neither a change of the Ingress, nor the
// status that another leader wrote while this process was stopped between the
// question whether it leads and the write.
func (w *Writer) writeOne(ctx context.Context, ing *networkingv1.Ingress, wanted addresses) error {
	client := w.settings.Client.NetworkingV1().Ingresses(ing.Namespace)
	for range mostConflicts {
		live, err := limited(ctx, w, func(ctx context.Context) (*networkingv1.Ingress, error) {
			return client.Get(ctx, ing.Name, metav1.GetOptions{})
		})
		if apierrors.IsNotFound(err) || err == nil && classChanged(ing, live) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read it: %w", err)
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

// classChanged tells whether the API server's version has left the class that
// the Ingress was selected for: it may be somebody else's by now.
func classChanged(ing, live *networkingv1.Ingress) bool {
	was, is := ing.Spec.IngressClassName, live.Spec.IngressClassName
	return was != nil && (is == nil || *is != *was)
}

// limited sends a request when it may be sent.
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

// note notes what an Ingress shows before a source tells of it.
func (w *Writer) note(ing *networkingv1.Ingress, wrote addresses) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name := nameOf(ing); w.known[name] != nil {
		w.shown[name] = wrote
	}
}
