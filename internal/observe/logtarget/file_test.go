package logtarget_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/headgate/headgate/internal/observe/logtarget"
	"github.com/headgate/headgate/internal/test/headgatetest"
)

// A file that was renamed or removed is opened again by its name, without loss of lines that
// were written before.
func TestRotation(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "a.log")
	w := logtarget.New(os.Stdout)
	if err := w.Set(name); err != nil {
		t.Fatal(err)
	}
	write := func() {
		t.Helper()
		if _, err := w.Write([]byte("line\n")); err != nil {
			t.Fatal(err)
		}
	}
	for _, rotate := range []func() error{
		func() error { return os.Rename(name, name+".1") },
		func() error { return os.Remove(name) },
	} {
		write()
		if err := rotate(); err != nil {
			t.Fatal(err)
		}
		headgatetest.Eventually(t, "lines are in the new file", func() bool {
			write()
			_, err := os.Stat(name)
			return err == nil
		})
	}
	if old, err := os.ReadFile(name + ".1"); err != nil || len(old) == 0 {
		t.Errorf("%v, the renamed file has %q", err, old)
	}
}
