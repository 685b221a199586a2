package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// An entry is a section as static/search.js finds it.
type entry struct {
	URL   string `json:"url"`
	Page  string `json:"page"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// writeIndex writes the index of the search. It is a script, since browsers load no data for pages
// that are files.
func (s *site) writeIndex(dir string) error {
	index := []entry{}
	for _, name := range slices.Sorted(maps.Keys(s.pages)) {
		sections := s.pages[name].sections
		for _, part := range sections {
			index = append(index, entry{name + "#" + part.id, sections[0].title, part.title, part.text})
		}
	}
	data, err := json.Marshal(index)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "search-index.js"), slices.Concat([]byte("searchIndex = "), data, []byte(";\n")), 0o644)
}
