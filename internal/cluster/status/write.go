package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// write writes the Ingresses in the queue, until that or ctx ends. Unless again is
// set, it tries each once, and returns when the API server does not respond.
func (w *Writer) write(ctx context.Context, queue queue, again bool) {
	for {
		name, ended := queue.Get()
		if ended || ctx.Err() != nil {
			return
		}
		err := w.check(ctx, name)
		if ctx.Err() != nil {
			return
		}
		leads := !errors.Is(err, errNotLeader)
		if err != nil && leads && w.logLimiter.TryAccept() {
			w.settings.Log.Warn("writing the status of an Ingress failed", "ingress", name.String(), "error", err)
		}
		switch {
		case err == nil:
			queue.Forget(name)
		case again:
			queue.AddRateLimited(name)
		case !ofIngress(err):
			// Shutdown must not wait for an unavailable API server.
			return
		}
		queue.Done(name)
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

func nameOf(ing *networkingv1.Ingress) types.NamespacedName {
	return types.NamespacedName{Namespace: ing.Namespace, Name: ing.Name}
}

// check writes an Ingress if its status is not the wanted one.
func (w *Writer) check(ctx context.Context, name types.NamespacedName) error {
	w.mu.Lock()
	ing, wanted, behind := w.known[name], w.wanted, w.isBehind(name)
	w.mu.Unlock()
	if !behind {
		return nil
	}
	return w.writeOne(ctx, ing, wanted)
}

// writeOne writes one Ingress, if the API server's newest version of it has other
// addresses. The request contains the version, so that no concurrent change is
// overwritten: neither one of the Ingress, nor the status that another leader
// wrote while this process was suspended between the check for leadership and the
// write.
func (w *Writer) writeOne(ctx context.Context, ing *networkingv1.Ingress, wanted Addresses) error {
	ingresses := w.settings.Client.Ingresses(ing.Namespace)
	for range maxConflicts {
		live, err := limited(ctx, w, func(ctx context.Context) (*networkingv1.Ingress, error) {
			return ingresses.Get(ctx, ing.Name, metav1.GetOptions{})
		})
		if apierrors.IsNotFound(err) || err == nil && classChanged(ing, live) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the Ingress: %w", err)
		}
		if slices.Equal(shownBy(live), wanted) {
			w.note(ing, wanted)
			return nil
		}
		live.Status.LoadBalancer.Ingress = wanted.entries()
		_, err = limited(ctx, w, func(ctx context.Context) (*networkingv1.Ingress, error) {
			if !w.settings.Leads() {
				return nil, errNotLeader
			}
			return ingresses.UpdateStatus(ctx, live, metav1.UpdateOptions{})
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
func (w *Writer) note(ing *networkingv1.Ingress, wrote Addresses) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name := nameOf(ing); w.known[name] != nil {
		w.shown[name] = wrote
	}
}
