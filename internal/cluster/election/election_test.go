package election_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/headgate/headgate/internal/cluster/election"
	"github.com/headgate/headgate/internal/test/clienttest"
)

// A candidate is an Elector that takes part.
type candidate struct {
	*election.Elector
	leave   chan struct{}
	ended   chan struct{}
	leading atomic.Bool
	terms   atomic.Int32
}

func compete(t *testing.T, cluster *fake.Clientset, identity string, ttl time.Duration, last func()) *candidate {
	t.Helper()
	c := &candidate{leave: make(chan struct{}), ended: make(chan struct{}), Elector: election.New(election.Settings{
		Leases: clienttest.Of(cluster).Leases("headgate"), Namespace: "headgate", Name: "leader", Identity: identity, TTL: ttl,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(c.ended)
		c.Run(ctx, c.leave, func(term context.Context) {
			c.terms.Add(1)
			c.leading.Store(true)
			defer c.leading.Store(false)
			select {
			case <-term.Done():
			case <-c.leave:
				last()
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-c.ended
	})
	return c
}

// timeout is much longer than any step of these tests takes.
const timeout = 30 * time.Second

func eventually(t *testing.T, what string, limit time.Duration, condition func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !condition() {
		if time.Since(began) > limit {
			t.Fatalf("%s: not within %v", what, limit)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(began)
}

func holder(t *testing.T, cluster *fake.Clientset) string {
	t.Helper()
	lease, err := cluster.CoordinationV1().Leases("headgate").Get(t.Context(), "leader", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return *lease.Spec.HolderIdentity
}

// TestLeave: the leader keeps the Lease until it has done what it does last,
// then another one leads at once.
func TestLeave(t *testing.T) {
	t.Parallel()
	cluster := fake.NewClientset()
	var looks atomic.Int32
	cluster.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		looks.Add(1)
		return false, nil, nil
	})
	const ttl = 4 * time.Second
	one := compete(t, cluster, "one", ttl, func() {
		// Longer than the Lease would count without being renewed.
		time.Sleep(ttl + ttl/4)
		if name := holder(t, cluster); name != "one" {
			t.Errorf("while the leader leaves, the Lease is held by %q", name)
		}
	})
	eventually(t, "the first leads", timeout, one.leading.Load)
	two := compete(t, cluster, "two", ttl, func() {})
	close(one.leave)
	eventually(t, "the first has left", timeout, func() bool {
		// In this order: when the first leads still, it did so when the second was
		// asked.
		if two.Leads() && one.Leads() {
			t.Fatal("two lead at once")
		}
		return !one.Leads()
	})
	<-one.ended
	// It looks at the Lease every quarter to half of its time, more or less: where
	// one that was just renewed is to expire first, it has to look twice.
	before := looks.Load()
	took := eventually(t, "the second leads", timeout, two.leading.Load)
	if n := looks.Load() - before; n > 1 {
		t.Errorf("the second leads %v after the first has left, when it has looked %d times: it waited until the Lease expired", took, n)
	}
}

// TestLost: a leader that can't renew the Lease is one no longer a quarter of
// its time before another one can be, and may be one again.
func TestLost(t *testing.T) {
	t.Parallel()
	cluster := fake.NewClientset()
	var mu sync.Mutex
	var renewed time.Time
	refused := false
	cluster.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		if refused {
			return true, nil, errors.New("away")
		}
		renewed = time.Now()
		return false, nil, nil
	})
	const ttl = 4 * time.Second
	one := compete(t, cluster, "one", ttl, func() {})
	eventually(t, "it leads", timeout, one.leading.Load)
	eventually(t, "it renews", timeout, func() bool { mu.Lock(); defer mu.Unlock(); return !renewed.IsZero() })
	mu.Lock()
	refused = true
	mu.Unlock()
	// What is read before it is asked is a time at which it may have acted,
	// however late this test comes to ask.
	var acted time.Time
	eventually(t, "it may act no longer", timeout, func() bool {
		now := time.Now()
		if !one.Leads() {
			return true
		}
		acted = now
		return false
	})
	mu.Lock()
	if since := acted.Sub(renewed); since > ttl*3/4 {
		t.Errorf("it acted still %v after the last renewal", since)
	}
	if since := time.Since(renewed); since < ttl/2 {
		t.Errorf("it acts no longer %v after the last renewal", since)
	}
	mu.Unlock()
	eventually(t, "its term ends", timeout, func() bool { return !one.leading.Load() })
	mu.Lock()
	refused = false
	mu.Unlock()
	eventually(t, "it leads again", timeout, func() bool { return one.Leads() && one.leading.Load() })
	if n := one.terms.Load(); n != 2 {
		t.Errorf("it led %d times", n)
	}
}

// TestGivenUp: a leader that leaves gives the Lease up.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	cluster := fake.NewClientset()
	one := compete(t, cluster, "one", time.Hour, func() {})
	eventually(t, "it leads", timeout, one.Leads)
	close(one.leave)
	<-one.ended
	if one.Leads() {
		t.Error("it leads still")
	}
	if name := holder(t, cluster); name != "" {
		t.Errorf("the Lease is held by %q", name)
	}
}

// TestTTL: a Lease holds whole seconds.
func TestTTL(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[time.Duration]int32{
		0: 30, -time.Second: 30, time.Millisecond: 1, 1500 * time.Millisecond: 2, 30 * time.Second: 30,
	} {
		cluster := fake.NewClientset()
		one := compete(t, cluster, fmt.Sprint(ttl), ttl, func() {})
		eventually(t, "it leads", timeout, one.Leads)
		lease, err := cluster.CoordinationV1().Leases("headgate").Get(t.Context(), "leader", metav1.GetOptions{})
		if err != nil || *lease.Spec.LeaseDurationSeconds != want {
			t.Errorf("%v makes %d seconds, want %d (%v)", ttl, *lease.Spec.LeaseDurationSeconds, want, err)
		}
	}
}
