package router

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/headgate/headgate/internal/pcre"
)

// A pattern is compiled when it is first needed, since most never are.
type pattern struct {
	text     string
	compiled func() (*pcre.Pattern, error)
}

func newPattern(text string) pattern {
	return pattern{text, sync.OnceValues(func() (*pcre.Pattern, error) {
		return pcre.Load(text, pcre.Options{Caseless: true})
	})}
}

func (p pattern) match(subject string) (bool, error) {
	compiled, err := p.compiled()
	if err != nil {
		return false, fmt.Errorf("compile %s: %w", p.text, err)
	}
	matches, err := compiled.Match(subject)
	if err != nil {
		return false, fmt.Errorf("match %s: %w", p.text, err)
	}
	return matches, nil
}

// namePatterns are the aliases for more than one name.
type namePatterns struct {
	heads, tails map[string]Name // by ".example.com" and by "www.example."
	regexes      []nameRegex
}

type nameRegex struct {
	pattern
	name Name
}

func decodePatterns(payload []byte) (*namePatterns, error) {
	var packed *struct {
		Heads, Tails map[string]packedName
		Regexes      []struct {
			packedName
			Pattern string
		}
	}
	if err := json.Unmarshal(payload, &packed); err != nil {
		return nil, err
	}
	if packed == nil {
		return nil, errors.New("the payload is null")
	}
	all := &namePatterns{heads: map[string]Name{}, tails: map[string]Name{}}
	var err error
	for text, name := range packed.Heads {
		if all.heads[text], err = name.unpack("*"+text, ByHead); err != nil {
			return nil, err
		}
	}
	for text, name := range packed.Tails {
		if all.tails[text], err = name.unpack(text+"*", ByTail); err != nil {
			return nil, err
		}
	}
	for _, regex := range packed.Regexes {
		name, err := regex.unpack("~"+regex.Pattern, ByRegex)
		if err != nil {
			return nil, err
		}
		all.regexes = append(all.regexes, nameRegex{newPattern(regex.Pattern), name})
	}
	return all, nil
}

// longestName is the maximum length of names that are compared with aliases, as in
// lua/headgate/patterns.lua. No DNS name is longer.
const longestName = 253

// find returns the name with the longest matching leading wildcard, otherwise with
// the longest trailing wildcard, otherwise the first matching regular expression.
// It returns errMissing if there is none. An expression that reaches its limit
// does not match.
func (p *namePatterns) find(hostName string) (Name, error) {
	missing := fmt.Errorf("an alias for %s: %w", strings.ToValidUTF8(hostName, "?"), errMissing)
	if len(hostName) > longestName {
		return Name{}, missing
	}
	// The * matches at least one label, so the first byte is never the dot.
	for i := 1; i < len(hostName); i++ {
		if hostName[i] == '.' {
			if name, ok := p.heads[hostName[i:]]; ok {
				return name, nil
			}
		}
	}
	for i := len(hostName) - 1; i > 0; i-- {
		if hostName[i] == '.' {
			if name, ok := p.tails[hostName[:i+1]]; ok {
				return name, nil
			}
		}
	}
	for _, regex := range p.regexes {
		if matches, err := regex.match(hostName); err == nil && matches {
			return regex.name, nil
		}
	}
	return Name{}, missing
}
