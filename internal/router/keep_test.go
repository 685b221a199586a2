package router

import (
	"strconv"
	"testing"

	"github.com/headgate/headgate/internal/unit"
)

// TestKeep: a Router keeps recently decoded units, and not too many.
func TestKeep(t *testing.T) {
	r := New(Settings{})
	for i := range 2*maxDecoded + 1 {
		key := unit.Key{Kind: unit.Host, Name: strconv.Itoa(i)}
		r.keep(key, decoded{version: key.Name})
		if kept, _ := r.kept(key); kept.version != key.Name || len(r.decoded) > maxDecoded {
			t.Fatalf("the last one has version %q of %d that are kept", kept.version, len(r.decoded))
		}
	}
}
