package router

import (
	"errors"
	"regexp"
	"strings"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// By is how a name was found.
type By string

// In the order in which they are tried.
const (
	ByName     By = "name"     // an exact name
	ByWildcard By = "wildcard" // the wildcard above it, "*.example.com"
	ByHead     By = "head"     // an alias with a leading wildcard
	ByTail     By = "tail"     // an alias with a trailing wildcard
	ByRegex    By = "regex"    // an alias that is a regular expression
	ByDefault  By = "default"  // none: the name is unknown
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
	if above, ok := wildcard(hostName); ok {
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
// the wildcard above it.
func (r *Router) Certificate(hostName string) (Name, bool) {
	name, err := r.Name(hostName)
	if err != nil {
		return Name{}, false
	}
	if name.HasTLS {
		return name, true
	}
	above, ok := wildcard(hostName)
	if name.By != ByName || !ok {
		return Name{}, false
	}
	name, err = r.nameUnit(above, ByWildcard)
	if err != nil || !name.HasTLS {
		return Name{}, false
	}
	return name, true
}

// wildcard is the wildcard above a name: the * matches one label of letters,
// digits, hyphens and underscores.
func wildcard(name string) (above string, ok bool) {
	label, rest, ok := strings.Cut(name, ".")
	if !ok || label == "" || strings.ContainsFunc(label, func(c rune) bool { return !isWord(c) }) {
		return "", false
	}
	return "*." + rest, true
}

func isWord(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

func unpack(p unit.PackedName, name string, by By) Name {
	return Name{model.Name{Name: name, Host: p.Host, Redirect: p.Redirect, HasTLS: p.HasTLS, Certificate: p.Certificate}, by}
}

func (r *Router) nameUnit(name string, by By) (Name, error) {
	return find(r, unit.Name.Key(name), func(p unit.PackedName) (Name, error) {
		if p.Host == "" {
			return Name{}, errNoHost
		}
		return unpack(p, name, by), nil
	})
}
