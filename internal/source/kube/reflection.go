package kube

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/headgate/headgate/internal/cluster/permission"
)

// A reflection follows one resource into a mirror.
type reflection struct {
	permission.Permission
	object   runtime.Object
	mirror   *mirror
	requests requests
	// refused is called when the resource may not be listed; nil for nothing.
	refused func()
}

// Pauses between tries. They are short while the API server does not answer, so
// that its return is noticed soon, and longer if it answers with an error.
const (
	firstPause       = 100 * time.Millisecond
	unreachablePause = time.Second
	refusedPause     = 5 * time.Second
	// healthy is how long a try must last to count as a success.
	healthy = 10 * time.Second
)

// debug is the verbosity that stands for slog's level Debug.
const debug = 4

// follow fills the mirror until ctx ends.
func (s *Source) follow(ctx context.Context, r *reflection) {
	// The log of the reflector is for debugging: the journal logs what matters.
	logger := logr.FromSlogHandler(s.settings.Log.Handler()).V(debug)
	ctx = klog.NewContext(ctx, logger)
	reflector := cache.NewReflectorWithOptions(s.listerWatcher(ctx, r), r.object, r.mirror, cache.ReflectorOptions{
		Logger: &logger, Name: r.String(), TypeDescription: r.String(),
		// For requests that the reflector itself repeats: too many requests.
		Backoff: &wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 10, Cap: refusedPause},
	})
	pause := time.Duration(0)
	for {
		began := time.Now()
		err := reflector.ListAndWatchWithContext(ctx)
		if time.Since(began) > healthy {
			pause = 0
		}
		limit := refusedPause
		if _, ok := errors.AsType[unreachable](err); ok {
			limit = unreachablePause
		}
		pause = min(max(firstPause, 2*pause), limit)
		s.settings.Log.Debug("kubernetes: watch ended", "resource", r.String(), "needed", r.Need, "error", err, "again_in", pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause*4/5 + rand.N(pause*2/5)):
		}
	}
}

// An unreachable is the error of a request without an answer. It hides the cause
// from the reflector: after a refused connection it would resume the watch where
// it ended, and miss that the API server was restored from an older snapshot.
type unreachable struct{ message string }

func (u unreachable) Error() string { return u.message }

func (s *Source) listerWatcher(ctx context.Context, r *reflection) cache.ListerWatcher {
	return &cache.ListWatch{
		// The reflector lists with a context that never ends.
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			sent := time.Now()
			list, err := r.requests.list(ctx, options)
			if apierrors.IsForbidden(err) && r.refused != nil {
				r.refused()
			}
			return list, s.answered(ctx, r.Permission, "list", sent, err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if err := s.checkVersion(ctx, r, options); err != nil {
				return nil, err
			}
			sent := time.Now()
			events, err := r.requests.watch(ctx, options)
			return events, s.answered(ctx, r.Permission, "watch", sent, err)
		},
	}
}

// checkVersion checks, before a watch is resumed where another one ended, that
// the API server still has that version: a watch from a version in the future
// reports no changes until then.
func (s *Source) checkVersion(ctx context.Context, r *reflection, options metav1.ListOptions) error {
	if options.SendInitialEvents != nil || options.ResourceVersion == "" {
		return nil
	}
	sent := time.Now()
	list, err := r.requests.list(ctx, metav1.ListOptions{Limit: 1})
	if err := s.answered(ctx, r.Permission, "list", sent, err); err != nil {
		return err
	}
	now, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	order, err := resourceversion.CompareResourceVersion(now.GetResourceVersion(), options.ResourceVersion)
	if err == nil && order < 0 {
		return apierrors.NewResourceExpired("the API server was restored from an older snapshot")
	}
	return nil
}

// answered reports the result of a request.
func (s *Source) answered(ctx context.Context, r permission.Permission, verb string, sent time.Time, err error) error {
	if ctx.Err() != nil {
		return err
	}
	s.journal.report(r, verb, sent, err)
	if _, ok := errors.AsType[*apierrors.StatusError](err); err != nil && !ok {
		return unreachable{err.Error()}
	}
	return err
}
