package main

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/test/e2e/clustertest"
)

// TestAwait: what is neither old nor new counts, and the change ends the wait.
func TestAwait(t *testing.T) {
	verdicts := []verdict{before, wrong, before, wrong, after, wrong}
	asked := 0
	count, err := await(t.Context(), func() verdict {
		asked++
		return verdicts[asked-1]
	})
	if count != 2 || asked != 5 || err != nil {
		t.Errorf("%d wrong answers of %d, error %v; want 2 of 5", count, asked, err)
	}
}

// TestParallel: every number comes once, and a failure ends it.
func TestParallel(t *testing.T) {
	var sum atomic.Int64
	add := func(_ context.Context, i int) error {
		sum.Add(int64(i))
		return nil
	}
	if err := parallel(t.Context(), 5, 105, add); err != nil || sum.Load() != 5450 {
		t.Errorf("sum %d, error %v; want 5450", sum.Load(), err)
	}
	failure := errors.New("refused")
	err := parallel(t.Context(), 0, 1000, func(_ context.Context, i int) error {
		if i == 500 {
			return failure
		}
		return nil
	})
	if !errors.Is(err, failure) {
		t.Errorf("error %v, want %v", err, failure)
	}
}

// TestAddress: all endpoints of a run have addresses of their own, which the
// node answers at.
func TestAddress(t *testing.T) {
	n := sizeOf(false)
	most := n.scales[len(n.scales)-1] + len(n.scales)*n.samples + stormSize
	// Others get as many once more: see changeOthers.
	large := largeScales[len(largeScales)-1] + 2*len(largeScales)*n.samples
	for _, scale := range largeScales {
		large += scale
	}
	most = max(most, large)
	within := netip.MustParsePrefix(clustertest.LocalRange)
	seen := map[netip.Addr]bool{}
	for i := range most * endpointsEach {
		at, err := netip.ParseAddr(address(i))
		if err != nil || !within.Contains(at) || seen[at] {
			t.Fatalf("the address %d is %s", i, address(i))
		}
		seen[at] = true
	}
}
