package clustertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// Shared is one cluster for all tests of a package, started by the first that
// asks for it:
//
//	var shared clustertest.Shared
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
//
//	func TestOne(t *testing.T) { cluster := shared.Start(t) … }
//
// On a machine where pods can't run the cluster runs without them. A test that
// needs them says so by [Cluster.NeedPods].
type Shared struct {
	Options Options

	mu      sync.Mutex
	cluster *Cluster
	err     error
}

// Start returns the package's cluster. If it cannot be started, or has ended,
// every test that asks for it fails with the reason.
func (s *Shared) Start(t testing.TB) *Cluster {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil && s.err == nil {
		// Not the test's context: the cluster is for the next tests too.
		s.cluster, s.err = s.newCluster(context.Background())
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	select {
	case <-s.cluster.Ended():
		t.Fatal("the cluster ended unexpectedly; " + s.cluster.lastWords())
	default:
	}
	return s.cluster
}

// newCluster starts the cluster, without pods if it does not start with them. The
// tests that need pods then fail with the reason.
func (s *Shared) newCluster(ctx context.Context) (*Cluster, error) {
	cluster, withPods := New(ctx, s.Options)
	if withPods == nil || s.Options.WithoutPods {
		return cluster, withPods
	}
	cluster, err := New(ctx, Options{WithoutPods: true})
	if err != nil {
		return nil, errors.Join(withPods, fmt.Errorf("without pods: %w", err))
	}
	cluster.withoutPods = fmt.Errorf("the cluster runs without pods, since it did not start with them: %w", withPods)
	fmt.Fprintln(os.Stderr, cluster.withoutPods)
	return cluster, nil
}

// Run runs the package's tests and ends the cluster. It returns the exit code;
// after a failure the cluster's logs are kept.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil {
		return code
	}
	if err := s.cluster.end(code != 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "the cluster's logs are in "+s.cluster.LogDir())
	}
	return code
}
