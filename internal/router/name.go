package router

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/unit"
)

// By says how a name was found.
type By string

// From the one that is tried first to the one that is tried last.
const (
	ByName     By = "name"     // a name of its own
	ByWildcard By = "wildcard" // the wildcard above it, "*.example.com"
	ByHead     By = "head"     // an alias for all names that end alike
	ByTail     By = "tail"     // an alias for all names that begin alike
	ByRegex    By = "regex"    // an alias that is a regular expression
	ByDefault  By = "default"  // nothing: the name is nobody's
)

// A Name is what answers for a name.
type Name struct {
	model.Name
	By By
}

// Name finds what answers for a name, lower case, without port and final dot.
// The error says which unit can't be used.
func (r *Router) Name(hostName string) (Name, error) {
	// A client that writes a star itself does not mean the wildcard.
	if !strings.HasPrefix(hostName, "*") {
		name, err := r.owner(hostName)
		if !errors.Is(err, errMissing) {
			return name, err
		}
	}
	return r.nameUnit(model.DefaultHost, ByDefault)
}

// owner is as Name for names that are somebody's.
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
	patterns, err := find(r, unit.Key{Kind: unit.Patterns, Name: unit.PatternsName}, decodePatterns)
	if err != nil {
		return Name{}, err
	}
	return patterns.find(hostName)
}

var address = regexp.MustCompile(`^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$`)

// mayBeAlias tells whether patterns may stand for a name: not for addresses,
// nor where a client names no host.
func mayBeAlias(hostName string) bool {
	return hostName != model.DefaultHost && !strings.HasPrefix(hostName, "[") && !address.MatchString(hostName)
}

// Certificate is the name whose certificate is shown to clients that ask for
// a name, false where that is the default certificate. A name that has no
// certificate of its own is covered by the wildcard above it.
func (r *Router) Certificate(hostName string) (Name, bool) {
	name, err := r.Name(hostName)
	if err != nil {
		return Name{}, false
	}
	if name.Secured {
		return name, true
	}
	above, ok := wildcard(hostName)
	if name.By != ByName || !ok {
		return Name{}, false
	}
	name, err = r.nameUnit(above, ByWildcard)
	if err != nil || !name.Secured {
		return Name{}, false
	}
	return name, true
}

// wildcard is the wildcard above a name: the star stands for one label of
// letters, digits, hyphens and underscores.
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

// A packedName is a name in the payload of a unit.
type packedName struct {
	Host        *string
	Redirect    bool
	Secured     bool
	Certificate string
}

func (p packedName) unpack(name string, by By) (Name, error) {
	if p.Host == nil {
		return Name{}, errors.New("a name without a host")
	}
	return Name{model.Name{Name: name, Host: *p.Host, Redirect: p.Redirect, Secured: p.Secured, Certificate: p.Certificate}, by}, nil
}

func (r *Router) nameUnit(name string, by By) (Name, error) {
	packed, err := find(r, unit.Key{Kind: unit.Name, Name: name}, func(payload []byte) (packedName, error) {
		var packed packedName
		if err := json.Unmarshal(payload, &packed); err != nil {
			return packedName{}, err
		}
		_, err := packed.unpack(name, by)
		return packed, err
	})
	if err != nil {
		return Name{}, err
	}
	return packed.unpack(name, by)
}
