package router

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/pcre"
	"github.com/headgate/headgate/internal/unit"
)

func load(text string) (*pcre.Pattern, error) { return pcre.Load(text, pcre.Options{Caseless: true}) }

func checkPatterns(p *unit.PackedPatterns) (*unit.PackedPatterns, error) {
	if p == nil {
		return nil, errors.New("the payload is null")
	}
	names := slices.AppendSeq(slices.Collect(maps.Values(p.LeadingWildcards)), maps.Values(p.TrailingWildcards))
	for _, regex := range p.Regexes {
		names = append(names, regex.PackedName)
	}
	if slices.ContainsFunc(names, func(n unit.PackedName) bool { return n.Host == "" }) {
		return nil, errNoHost
	}
	return p, nil
}

// longestName is the maximum length of names that are compared with aliases, as in
// lua/headgate/patterns.lua. No DNS name is longer.
const longestName = 253

// alias returns the name with the longest matching leading wildcard, otherwise with
// the longest trailing wildcard, otherwise the first matching regular expression.
// It returns errMissing if there is none. An expression that reaches its limit
// does not match.
func (r *Router) alias(hostName string) (Name, error) {
	p, err := find(r, unit.PatternsKey, checkPatterns)
	if err != nil {
		return Name{}, err
	}
	missing := fmt.Errorf("an alias for %s: %w", strings.ToValidUTF8(hostName, "?"), errMissing)
	if len(hostName) > longestName {
		return Name{}, missing
	}
	// The * matches at least one label, so the first byte is never the dot.
	for i := 1; i < len(hostName); i++ {
		if name, ok := p.LeadingWildcards[hostName[i:]]; ok && hostName[i] == '.' {
			return unpack(name, "*"+hostName[i:], ByHead), nil
		}
	}
	for i := len(hostName) - 1; i > 0; i-- {
		if name, ok := p.TrailingWildcards[hostName[:i+1]]; ok && hostName[i] == '.' {
			return unpack(name, hostName[:i+1]+"*", ByTail), nil
		}
	}
	for _, regex := range p.Regexes {
		if pattern, err := load(regex.Pattern); err == nil {
			if matches, err := pattern.Match(hostName); err == nil && matches {
				return unpack(regex.PackedName, "~"+regex.Pattern, ByRegex), nil
			}
		}
	}
	return Name{}, missing
}
