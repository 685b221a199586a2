package selection

import (
	"testing"

	"github.com/headgate/headgate/internal/store"
)

// TestLocalAddresses: a folder may name services on the same machine, a cluster only
// with the flag.
func TestLocalAddresses(t *testing.T) {
	for _, c := range []struct{ flag, folder, want bool }{
		{false, false, false}, {true, false, true}, {false, true, true}, {true, true, true},
	} {
		settings, err := Flags{Objects: store.Settings{LocalAddresses: c.flag}}.Store(c.folder)
		if err != nil {
			t.Fatal(err)
		}
		if settings.LocalAddresses != c.want {
			t.Errorf("flag %v, folder %v: got %v, want %v", c.flag, c.folder, settings.LocalAddresses, c.want)
		}
	}
}
