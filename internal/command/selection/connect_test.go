package selection

import (
	"log/slog"
	"testing"

	"k8s.io/klog/v2"
)

// TestClientLog: the client of the API server logs with the verbosity of the flags, but never bodies.
func TestClientLog(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	t.Cleanup(func() {
		if err := ShareLog(log, 0, nil); err != nil {
			t.Error(err)
		}
		klog.ClearLogger()
	})
	for verbosity, most := range map[int]int{0: 0, 2: 2, 10: 7} {
		if err := ShareLog(log, verbosity, nil); err != nil {
			t.Fatal(err)
		}
		if !klog.V(klog.Level(most)).Enabled() || klog.V(klog.Level(most+1)).Enabled() {
			t.Errorf("with verbosity %d, the client does not log up to %d", verbosity, most)
		}
	}
}
