package nginx

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// TestTry: lines are tested alone, and the same ones once.
func TestTry(t *testing.T) {
	found, err := Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := New(Options{Capabilities: found})
	asked := 0
	trial := func(http, location string) Trial {
		return Trial{
			Lines: func(folder string) ([]string, []string) {
				if folder != "" {
					asked++
				}
				return []string{http}, []string{location}
			},
			Files: map[string][]byte{"files/one": []byte("add_header X-One 1;\n")},
		}
	}
	if err := p.Try(trial("gzip on;", "include files/one;")); err != nil {
		t.Error(err)
	}
	var rejected *ConfError
	for _, c := range [][2]string{{"gzip perhaps;", ""}, {"", "include files/two;"}, {"", "nonsense;"}} {
		before := asked
		for range 2 {
			if err := p.Try(trial(c[0], c[1])); !errors.As(err, &rejected) || strings.Contains(err.Error(), "headgate-try") {
				t.Errorf("%v: %v", c, err)
			}
		}
		if asked != before+1 {
			t.Errorf("%v: tested %d times", c, asked-before)
		}
	}
}

// TestTriedIsBounded: a new result replaces one other, and not all of them.
func TestTriedIsBounded(t *testing.T) {
	var kept tried
	for i := range maxTried + 10 {
		kept.keep(strconv.Itoa(i), nil)
	}
	if len(kept.results) != maxTried {
		t.Errorf("%d results are kept, want %d", len(kept.results), maxTried)
	}
}
