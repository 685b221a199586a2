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
		"203.0.113.7:0":                                 "127.0.0.1",
		"203.0.113.7:65536":                             "127.0.0.1",
		"203.0.113.7:00080":                             "203.0.113.7",
		"[203.0.113.7]:80":                              "203.0.113.7",
		"[2001:db8::7]":                                 "127.0.0.1",
		"[2001:db8::7]:0":                               "127.0.0.1",
		"fe80::1%lo":                                    "127.0.0.1",
		",203.0.113.7":                                  "127.0.0.1",
		",,203.0.113.7,":                                "203.0.113.7",
		"203.0.113.7, 010.0.0.1":                        "203.0.113.7",
		"203.0.113.007":                                 "203.0.113.7",
		"203..113.":                                     "203.0.113.0",
		"203.0.113":                                     "127.0.0.1",
		"255.255.255.255":                               "127.0.0.1",
		"203.0.113.256":                                 "127.0.0.1",
		",":                                             "127.0.0.1",
	} {
		if got := lastOther(netip.MustParseAddr("127.0.0.1"), value, trusted); got.String() != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}
