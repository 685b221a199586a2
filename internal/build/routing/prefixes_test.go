package routing

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestPrefixes compares with looking at all of them.
func TestPrefixes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		for range random.IntN(7) {
			b.WriteByte("ab/\x00\xff"[random.IntN(5)])
		}
		return b.String()
	}
	for range 3000 {
		var list []string
		for range random.IntN(9) {
			list = append(list, text())
		}
		p, asked, want := newPrefixes(slices.Clone(list)), text(), "none"
		for _, one := range list {
			if strings.HasPrefix(asked, one) && (want == "none" || len(one) > len(want)) {
				want = one
			}
		}
		got := "none"
		if i := p.longest(asked); i >= 0 {
			got = p.texts[i]
		}
		if got != want {
			t.Fatalf("of %q, the longest that %q begins with is %q, not %q", list, asked, got, want)
		}
	}
}
