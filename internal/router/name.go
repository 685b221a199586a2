package router

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/pcre"
	"github.com/headgate/headgate/internal/unit"
)

// By is how a name was found.
type By string

// In the order in which they are tried.
const (
	ByName             By = "name"              // an exact name
	ByWildcard         By = "wildcard"          // the wildcard above it, "*.example.com"
	ByLeadingWildcard  By = "leading wildcard"  // an alias with a leading wildcard
	ByTrailingWildcard By = "trailing wildcard" // an alias with a trailing wildcard
	ByRegex            By = "regex"             // an alias that is a regular expression
	ByDefault          By = "default"           // none: the name is unknown
)

// A Name is a found name and its host.
type Name struct {
	model.Name
	By By
}

// Name finds the host of a name, which must be in lower case, without port and
// final dot. An error names the unit that can't be used.
func (r *Router) Name(hostName string) (Name, error) {
	// A literal * in a request does not match the wildcard.
	if !strings.HasPrefix(hostName, "*") {
		name, err := r.owner(hostName)
		if !errors.Is(err, errMissing) {
			return name, err
		}
	}
	return r.nameUnit(model.DefaultHost, ByDefault)
}

// owner is Name for names that are not unknown.
func (r *Router) owner(hostName string) (Name, error) {
	by := ByName
	if hostName == model.DefaultHost {
		by = ByDefault
	}
	name, err := r.nameUnit(hostName, by)
	if !errors.Is(err, errMissing) {
		return name, err
	}
	if above, ok := model.WildcardAbove(hostName); ok {
		name, err = r.nameUnit(above, ByWildcard)
		if !errors.Is(err, errMissing) {
			return name, err
		}
	}
	if !mayBeAlias(hostName) {
		return Name{}, errMissing
	}
	return r.alias(hostName)
}

var address = regexp.MustCompile(`^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$`)

// mayBeAlias reports whether patterns may match a name. Addresses and an empty
// name are excluded.
func mayBeAlias(hostName string) bool {
	return hostName != model.DefaultHost && !strings.HasPrefix(hostName, "[") && !address.MatchString(hostName)
}

// Certificate returns the name whose certificate is shown for a server name, or
// false for the default certificate. A name without a certificate gets that of
// the wildcard above it, if both have the same owner.
func (r *Router) Certificate(hostName string) (Name, bool) {
	name, err := r.Name(hostName)
	if err != nil {
		return Name{}, false
	}
	above, ok := model.WildcardAbove(hostName)
	if name.HasTLS || slices.Contains(name.Covers, hostName) || ok && slices.Contains(name.Covers, above) {
		return name, true
	}
	if name.By != ByName || !ok {
		return Name{}, false
	}
	covering, err := r.nameUnit(above, ByWildcard)
	if err != nil || !covering.HasTLS || covering.Owner != name.Owner {
		return Name{}, false
	}
	return covering, true
}

func unpack(p unit.PackedName, name string, by By) Name {
	return Name{model.Name{Name: name, Host: p.Host, Owner: p.Owner, Redirect: p.Redirect, HasTLS: p.HasTLS, Certificate: p.Certificate, Covers: slices.Sorted(maps.Keys(p.Covers))}, by}
}

func (r *Router) nameUnit(name string, by By) (Name, error) {
	return find(r, unit.Name.Key(name), func(p unit.PackedName) (Name, error) {
		if p.Host == "" {
			return Name{}, errNoHost
		}
		return unpack(p, name, by), nil
	})
}

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
			return unpack(name, "*"+hostName[i:], ByLeadingWildcard), nil
		}
	}
	for i := len(hostName) - 1; i > 0; i-- {
		if name, ok := p.TrailingWildcards[hostName[:i+1]]; ok && hostName[i] == '.' {
			return unpack(name, hostName[:i+1]+"*", ByTrailingWildcard), nil
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
