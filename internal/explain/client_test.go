package explain

import (
	"net/netip"
	"testing"

	"github.com/headgate/headgate/internal/model"
)

// TestLastOther has the values with which TestWhoAsks of internal/feature/clientaddress asks NGINX.
func TestLastOther(t *testing.T) {
	t.Parallel()
	trusted := model.Networks{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8")}
	for value, want := range map[string]string{
		"unknown":                   "127.0.0.1",
		"":                          "127.0.0.1",
		"203.0.113.7":               "203.0.113.7",
		"203.0.113.7:4711":          "203.0.113.7",
		"[2001:db8::7]:4711":        "2001:db8::7",
		"::ffff:203.0.113.7":        "::ffff:203.0.113.7",
		"198.51.100.1, 203.0.113.7": "203.0.113.7",
		"198.51.100.1, 203.0.113.7,10.0.0.1 , 10.0.0.2": "203.0.113.7",
		"203.0.113.7, ::ffff:10.0.0.1":                  "203.0.113.7",
		"203.0.113.7, unknown, 10.0.0.1":                "10.0.0.1",
		"127.0.0.1":                                     "127.0.0.1",
	} {
		if got := lastOther(netip.MustParseAddr("127.0.0.1"), value, trusted); got.String() != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}
