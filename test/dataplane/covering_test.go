package dataplane_test

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// covering returns rows that choose one of so many values for each factor, such that each two
// values of different factors meet in a row, unless they never may. It is the same list each
// time. may says whether a choice is possible; -1 stands for a factor that is not chosen yet.
func covering(sizes []int, may func(row []int) bool) [][]int {
	c := &cover{sizes: sizes, may: may, missing: map[[4]int]bool{}, random: rand.New(rand.NewPCG(1, 2))}
	for a := range sizes {
		for b := range a {
			for i := range sizes[a] {
				for j := range sizes[b] {
					if row := c.start(a, i, b, j); may(row) {
						c.missing[[4]int{b, j, a, i}] = true
						c.pairs = append(c.pairs, [4]int{b, j, a, i})
					}
				}
			}
		}
	}
	var rows [][]int
	for _, pair := range c.pairs {
		if !c.missing[pair] {
			continue
		}
		row := c.start(pair[0], pair[1], pair[2], pair[3])
		for _, factor := range c.random.Perm(len(sizes)) {
			if row[factor] < 0 {
				row[factor] = c.best(row, factor)
			}
		}
		c.remove(row)
		rows = append(rows, row)
	}
	return rows
}

// A cover knows which pairs are still to be met. A pair is of two factors, the lower one
// first, each with its value.
type cover struct {
	sizes   []int
	may     func(row []int) bool
	pairs   [][4]int
	missing map[[4]int]bool
	random  *rand.Rand
}

// start is a row with two factors chosen.
func (c *cover) start(a, i, b, j int) []int {
	row := slices.Repeat([]int{-1}, len(c.sizes))
	row[a], row[b] = i, j
	return row
}

// best is the value that meets most of the others of a row for the first time.
func (c *cover) best(row []int, factor int) int {
	best, most := -1, -1
	for _, value := range c.random.Perm(c.sizes[factor]) {
		row[factor] = value
		if gain := len(c.met(row, factor)); gain > most && c.may(row) {
			best, most = value, gain
		}
	}
	row[factor] = -1
	return best
}

// met are the missing pairs that a factor's value makes with the others of a row.
func (c *cover) met(row []int, factor int) [][4]int {
	var list [][4]int
	for other, value := range row {
		pair := [4]int{other, value, factor, row[factor]}
		if other > factor {
			pair = [4]int{factor, row[factor], other, value}
		}
		if other != factor && c.missing[pair] {
			list = append(list, pair)
		}
	}
	return list
}

func (c *cover) remove(row []int) {
	for factor := range row {
		for _, pair := range c.met(row, factor) {
			delete(c.missing, pair)
		}
	}
}

// TestCovering has every pair that may be in a row, and none that may not.
func TestCovering(t *testing.T) {
	t.Parallel()
	sizes := []int{5, 3, 7, 2}
	may := func(row []int) bool { return row[0] != 1 || row[2] != 4 && row[2] != 5 }
	rows := covering(sizes, may)
	for a := range sizes {
		for b := range a {
			for i := range sizes[a] {
				for j := range sizes[b] {
					never := a == 2 && b == 0 && j == 1 && (i == 4 || i == 5)
					if slices.ContainsFunc(rows, func(row []int) bool { return row[a] == i && row[b] == j }) == never {
						t.Errorf("value %d of factor %d and %d of %d: together in a row: %v", i, a, j, b, never)
					}
				}
			}
		}
	}
	if len(rows) > 45 {
		t.Errorf("%d rows, and 35 are needed", len(rows))
	}
	for _, row := range rows {
		if slices.Contains(row, -1) || !may(row) {
			t.Errorf("row %v", row)
		}
	}
}
