package selfsigned

import (
	"context"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestReplicas: replicas that run at once agree on one certificate, through renewals, and
// can be called all the time.
func TestReplicas(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	replicas := make([]*Keeper, 4)
	for i := range replicas {
		replicas[i] = f.keeper()
		running.Go(func() { replicas[i].Run(ctx) })
	}
	// agreed is the serial number that all replicas have, another one than before.
	agreed := func(before string) string {
		for {
			seen := map[string]bool{}
			for _, k := range replicas {
				earlier := f.bundle()
				serial, err := call(k, earlier)
				if err != nil && before != "" {
					// The bundle may be older than the certificate.
					serial, err = call(k, f.bundle())
				}
				if err != nil && before != "" {
					t.Fatal(err)
				}
				if err != nil {
					serial = ""
				}
				seen[serial] = true
			}
			for serial := range seen {
				if len(seen) == 1 && serial != before {
					return serial
				}
			}
			time.Sleep(time.Millisecond)
		}
	}
	serial := agreed("")
	for range 3 {
		f.annotate()
		serial = agreed(serial)
	}
}

// annotate is renew among replicas that write too.
func (f *fixture) annotate() {
	f.Helper()
	for {
		s := f.secret()
		s.Annotations = map[string]string{RenewAnnotation: "now"}
		_, err := f.cluster.CoreV1().Secrets(secretName.Namespace).Update(f.Context(), s, metav1.UpdateOptions{})
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			f.Fatal(err)
		}
	}
}
