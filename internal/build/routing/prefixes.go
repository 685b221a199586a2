package routing

import (
	"slices"
	"sort"
)

// prefixes find the longest of some texts that another text begins with, in time that grows
// with the logarithm of their number, and with how many of them begin with each other.
type prefixes struct {
	texts []string // sorted
	// above has the place of the longest other text that each text begins with, -1 for
	// none.
	above []int
}

// newPrefixes takes texts in any order, which it sorts.
func newPrefixes(texts []string) prefixes {
	slices.Sort(texts)
	p := prefixes{slices.Compact(texts), nil}
	p.above = make([]int, len(p.texts))
	for i, text := range p.texts {
		p.above[i] = p.climb(i-1, text)
	}
	return p
}

// longest is -1 if the text begins with none.
func (p prefixes) longest(text string) int {
	return p.climb(sort.SearchStrings(p.texts, text+"\x00")-1, text)
}

// climb goes from the last of the texts that sort before a text up to one that it begins
// with.
func (p prefixes) climb(i int, text string) int {
	if i < 0 {
		return -1
	}
	common := 0
	for near := p.texts[i]; common < min(len(near), len(text)) && near[common] == text[common]; {
		common++
	}
	for i >= 0 && len(p.texts[i]) > common {
		i = p.above[i]
	}
	return i
}
