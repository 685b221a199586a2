package nginxtemplate

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/source"
)

// TestRun: a version is delivered once it was there in two looks, and what is gone is deleted.
func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nginx.tmpl")
	synctest.Test(t, func(t *testing.T) {
		write := func(text string) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f := Open(path, slog.New(slog.DiscardHandler))
		if f.Object() != nil {
			t.Fatal("there is a template")
		}
		// The race detector sees no order between what a goroutine does before it sleeps and what
		// others do then.
		var mu sync.Mutex
		var got []string
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = f.Run(ctx, func(_ context.Context, changes []source.Change) {
				mu.Lock()
				defer mu.Unlock()
				for _, c := range changes {
					text := c.Object.(*source.Template).Text
					if c.Deleted {
						text = "deleted"
					}
					got = append(got, text)
				}
			})
		}()
		want := func(last string, count int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(got) != count || count > 0 && got[count-1] != last {
				t.Fatalf("%q, want %d, the last one %q", got, count, last)
			}
		}
		time.Sleep(look / 2)
		write("half")
		time.Sleep(look)
		want("", 0)
		write("whole")
		time.Sleep(look)
		want("", 0)
		time.Sleep(look)
		want("whole", 1)
		time.Sleep(10 * look)
		want("whole", 1)
		write("")
		time.Sleep(2 * look)
		want("\n", 2)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * look)
		want("deleted", 3)
		cancel()
		<-done
	})
}
