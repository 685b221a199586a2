package overview

import (
	"strings"
	"unicode/utf8"
)

// Bounds of what one answer has.
const (
	// MaxPage is how many items a Page may have.
	MaxPage = 200
	// fewNames is how many names are listed inside of an item, and maxText is the number of
	// bytes of a text in it.
	fewNames = 10
	maxText  = 1000
)

// A Query selects items.
type Query struct {
	// Text is in what is found, in any case; empty for all.
	Text string
	// Problems leaves out what works.
	Problems bool
	// Offset items are left out, and Limit is how many there are at most.
	Offset, Limit int
}

// A Page is the items of a query from its offset on, and the number of all that were found.
type Page[Item any] struct {
	Items []Item `json:"items"`
	Total int    `json:"total"`
}

// pick makes a page of those keys that fit.
func pick[Item any](keys []string, q Query, fits func(key string) bool, show func(key string) Item) Page[Item] {
	p := Page[Item]{Items: []Item{}}
	for _, key := range keys {
		if !fits(key) {
			continue
		}
		if p.Total >= q.Offset && len(p.Items) < q.Limit {
			p.Items = append(p.Items, show(key))
		}
		p.Total++
	}
	return p
}

// Part makes a page of items that were selected already.
func Part[Item any](all []Item, q Query) Page[Item] {
	from := min(q.Offset, len(all))
	return Page[Item]{append([]Item{}, all[from:min(from+q.Limit, len(all))]...), len(all)}
}

// has reports whether one of the texts has the query's.
func (q Query) has(texts ...string) bool {
	if q.Text == "" {
		return true
	}
	wanted := strings.ToLower(q.Text)
	for _, text := range texts {
		if strings.Contains(strings.ToLower(text), wanted) {
			return true
		}
	}
	return false
}

// A Few is the first of many names.
type Few struct {
	Names []string `json:"names"`
	Total int      `json:"total"`
}

// few shortens a list.
func few(names []string) Few {
	f := Few{Names: []string{}, Total: len(names)}
	for _, name := range names[:min(len(names), fewNames)] {
		f.Names = append(f.Names, Shorten(name))
	}
	return f
}

// Shorten bounds a text.
func Shorten(text string) string {
	if len(text) <= maxText {
		return text
	}
	cut := maxText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
