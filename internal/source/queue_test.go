package source

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func secret(name string) Change {
	return Change{Object: &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}}
}

func gone(c Change) Change { return Change{Object: c.Object, Deleted: true} }

func describe(changes []Change) string {
	var text []string
	for _, c := range changes {
		sign := "+"
		if c.Deleted {
			sign = "-"
		}
		text = append(text, fmt.Sprintf("%s%T %s", sign, c.Object, c.Object.GetName()))
	}
	return strings.Join(text, ", ")
}

// TestNewestCounts: of several changes of one object the newest is delivered,
// where the first one stood. Objects of other kinds are other objects.
func TestNewestCounts(t *testing.T) {
	q := NewQueue()
	q.Put(secret("a"), secret("b"))
	q.Put(gone(secret("a")), Change{Object: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}})
	<-q.Filled()
	changes, puts := q.Collect(t.Context())
	if got, want := describe(changes), "-*v1.Secret a, +*v1.Secret b, +*v1.Service a"; got != want || puts != 2 || q.Puts() != 2 {
		t.Errorf("after %d puts: %s, want %s", puts, got, want)
	}
	q.Put(secret("b"))
	if changes, _ := q.Collect(t.Context()); describe(changes) != "+*v1.Secret b" {
		t.Errorf("the next batch: %s", describe(changes))
	}
}

// TestCollectWaitsForMore, but not for long.
func TestCollectWaitsForMore(t *testing.T) {
	for pause, want := range map[time.Duration]time.Duration{quiet / 2: longest, 2 * quiet: quiet} {
		synctest.Test(t, func(t *testing.T) {
			q, began := NewQueue(), time.Now()
			go func() {
				for n := range 200 {
					time.Sleep(pause)
					q.Put(secret(fmt.Sprint(n)))
				}
			}()
			if q.Collect(t.Context()); time.Since(began) != want {
				t.Errorf("with a change every %v a batch takes %v, want %v", pause, time.Since(began), want)
			}
			time.Sleep(time.Second)
		})
	}
}

// TestRunDelivers: the first batch may be empty, and channels are closed after
// what was put before.
func TestRunDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		q, events := NewQueue(), make(chan string, 10)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			q.Run(ctx, func(_ context.Context, changes []Change) { events <- describe(changes) }, true)
		}()
		if first := <-events; first != "" {
			t.Errorf("first %q", first)
		}
		done := make(chan struct{})
		q.Put(secret("a"))
		q.CloseDelivered(done)
		<-done
		if second := <-events; second != "+*v1.Secret a" {
			t.Errorf("second %q", second)
		}
		q.CloseDelivered(make(chan struct{}))
		synctest.Wait()
		if len(events) > 0 {
			t.Errorf("an empty batch: %q", <-events)
		}
		cancel()
		<-ended
	})
}
