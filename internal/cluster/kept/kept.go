// Package kept keeps objects in a cluster that several replicas keep at once: each looks at them again
// and again, and an update of an older version is refused. What is in the objects is for its callers.
package kept

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/cluster/client"
)

const (
	// requestTimeout bounds one look.
	requestTimeout = 10 * time.Second
	// again is about how long after the change of another replica the next look is.
	again = 50 * time.Millisecond
)

// A Loop looks at objects.
type Loop struct {
	// Look does the next thing that is to be done.
	Look func(context.Context) error
	// Interval is the time between two looks.
	Interval time.Duration
	// What is what is kept, for the log, and Effect the effect of an error.
	What   string
	Effect func() string
	Log    *slog.Logger

	// reported is the last error.
	reported string
}

// Run looks until ctx ends.
func (l *Loop) Run(ctx context.Context) {
	for ctx.Err() == nil {
		looking, cancel := context.WithTimeout(ctx, requestTimeout)
		err := l.Look(looking)
		cancel()
		wait := l.Interval
		if IsOvertaken(err) {
			wait = again/2 + rand.N(again)
		} else if ctx.Err() == nil {
			l.report(err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// IsOvertaken reports whether another replica was faster.
func IsOvertaken(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// report logs an error once.
func (l *Loop) report(err error) {
	if err == nil {
		if l.reported != "" {
			l.Log.Info(l.What + " can be kept again")
		}
		l.reported = ""
		return
	}
	if err.Error() == l.reported {
		return
	}
	l.reported = err.Error()
	l.Log.Error("cannot keep "+l.What, "error", err, "effect", l.Effect())
}

// Secret has a Secret changed, and created if it is missing. It returns the Secret as it is after that,
// or as it was, with an error, if that was not possible; nil if there is none. The second result is what
// change has done, "" for nothing.
func Secret(ctx context.Context, clients *client.Clients, name types.NamespacedName, change func(*corev1.Secret) (string, error)) (*corev1.Secret, string, error) {
	secrets := clients.Secrets(name.Namespace)
	was, err := secrets.Get(ctx, name.Name, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, "", fmt.Errorf("read the Secret %s: %w", name, err)
	}
	changed := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if missing {
		was = nil
	} else {
		changed = was.DeepCopy()
	}
	done, err := change(changed)
	if err != nil || done == "" {
		return was, "", err
	}
	if missing {
		changed, err = secrets.Create(ctx, changed, metav1.CreateOptions{})
	} else {
		changed, err = secrets.Update(ctx, changed, metav1.UpdateOptions{})
	}
	if err != nil {
		return was, "", fmt.Errorf("write the Secret %s: %w", name, err)
	}
	return changed, done, nil
}
