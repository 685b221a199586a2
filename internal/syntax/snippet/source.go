package snippet

import (
	"slices"
	"sync"
)

// A Source is the text of a snippet. It is translated once for the same options: many routes
// may have it.
type Source struct {
	Text string

	mu      sync.Mutex
	options Options
	parsed  *Snippet
}

// Parse translates the text, always for the same place.
func (s *Source) Parse(place Place, options Options) *Snippet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parsed == nil || !slices.Equal(s.options.Defined, options.Defined) || !slices.Equal(s.options.Administrator, options.Administrator) {
		s.options, s.parsed = options, Parse(s.Text, place, options)
	}
	return s.parsed
}
