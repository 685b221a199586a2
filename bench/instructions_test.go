package main

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestCompareInstructions(t *testing.T) {
	table := Instructions{NGINX: "1.22.1", ByHand: 30000, Kinds: map[string]float64{}, Hands: map[string]float64{}}
	for _, kind := range requestKinds() {
		table.Kinds[kind.name] = 40000
		if kind.hand != "" {
			table.Hands[kind.hand] = 35000
		}
	}
	counted := func(byHand, first float64) Instructions {
		c := Instructions{NGINX: table.NGINX, ByHand: byHand, Kinds: maps.Clone(table.Kinds), Hands: maps.Clone(table.Hands)}
		for _, counts := range []map[string]float64{c.Kinds, c.Hands} {
			for name := range counts {
				counts[name] *= byHand / table.ByHand
			}
		}
		c.Kinds["one host"] = first
		return c
	}
	for name, c := range map[string]struct {
		counted Instructions
		fails   bool
	}{
		"the same":                             {counted(30000, 40000), false},
		"5 % more":                             {counted(30000, 42000), false},
		"7 % more":                             {counted(30000, 42800), true},
		"7 % less":                             {counted(30000, 37200), true},
		"all of another library":               {counted(33000, 44000), false},
		"more by another library":              {counted(33000, 49000), true},
		"no count":                             {counted(30000, 0), true},
		"nothing counted by hand":              {counted(0, 0), true},
		"7 % more, of another NGINX":           {Instructions{NGINX: "1.26.3", ByHand: 30000, Kinds: counted(30000, 42800).Kinds, Hands: table.Hands}, false},
		"nothing counted by hand of a backend": {Instructions{NGINX: table.NGINX, ByHand: 30000, Kinds: table.Kinds}, true},
		"no kinds":                             {Instructions{NGINX: table.NGINX, ByHand: 30000}, true},
	} {
		err := table.compare(c.counted, requestKinds(), io.Discard)
		if (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "-instructions -update") {
			t.Errorf("%s: %q does not say how to write the table", name, err)
		}
	}
	high, low := counted(30000, 43000), counted(33000, 44100)
	if err := table.compare(nearest(table, []Instructions{high, low}, requestKinds()), requestKinds(), io.Discard); err != nil {
		t.Errorf("a count that is right at the second attempt: %v", err)
	}
	if err := table.compare(nearest(table, []Instructions{high, high}, requestKinds()), requestKinds(), io.Discard); err == nil {
		t.Error("a count that is wrong at both attempts passes")
	}
	if got := medians([]Instructions{counted(30000, 1), counted(33000, 3), counted(31000, 2)}); got.ByHand != 31000 || got.Kinds["one host"] != 2 {
		t.Errorf("medians: %v", got)
	}
	ewma := counted(30000, 40000)
	ewma.Kinds["ewma"] *= 1.3
	if err := table.compare(ewma, requestKinds(), io.Discard); err == nil || !strings.Contains(err.Error(), "ewma") {
		t.Errorf("30 %% more of a kind with another base: %v", err)
	}
	if err := (Instructions{NGINX: table.NGINX, ByHand: 30000}).compare(table, requestKinds(), io.Discard); err == nil {
		t.Error("a kind that is not in the table passes")
	}
}

func requestKinds() []requestKind {
	return slices.Concat(ownKinds(), tracingKinds(), loggingKinds(false), guardKinds(), backendKinds())
}
