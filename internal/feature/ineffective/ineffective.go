// Package ineffective has keys of ingress-nginx for parts that Headgate does not have. Their
// values are checked, and a finding says why another one than the default changes nothing.
package ineffective

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
)

const noEffect = "it has no effect"

const (
	internalHeader = "Lua joins the addresses of the PROXY protocol and of headers, and no backend gets a header for that"
	preferred      = "the IPv6 addresses of a DNS name are used only if it has none of IPv4"
	ownMemory      = "Headgate's shared memory has other parts, and grows by itself"
)

var (
	proxyProtocolHeader = feature.Setting[string]{
		Key: "forwarded-for-proxy-protocol-header", Default: "X-Forwarded-For-Proxy-Protocol", Scope: feature.ScopeProcess,
		Parse: feature.Matching(`^[A-Za-z0-9-]+$`, 64, "must be the name of a header: 1 to 64 letters, digits and -"),
		Doc:   "Has no effect: " + internalHeader + ".",
	}
	disableIPv6DNS = feature.Setting[bool]{
		Key: "disable-ipv6-dns", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Has no effect: " + preferred + ".",
	}
	sharedDicts = feature.Setting[dictionaries]{
		Key: "lua-shared-dicts", Parse: parseDictionaries, Scope: feature.ScopeProcess,
		Doc: "Names and sizes, such as `configuration_data: 100M`, separated by commas. Has no effect: " + ownMemory + " (see [tuning.md](tuning.md)).",
	}
)

// Feature is the keys without effect.
func Feature() feature.Feature {
	return feature.Feature{
		Name:     "ineffective",
		Doc:      "Keys of ingress-nginx for parts that Headgate does not have.",
		Settings: []feature.AnySetting{proxyProtocolHeader, disableIPv6DNS, sharedDicts},
		Process:  report,
	}
}

func report(v feature.Values, out *feature.ProcessOut) {
	if proxyProtocolHeader.Get(v) != proxyProtocolHeader.Default {
		out.Warn(proxyProtocolHeader, finding.NoEffect, internalHeader, noEffect)
	}
	if disableIPv6DNS.Get(v) {
		out.Warn(disableIPv6DNS, finding.NoEffect, preferred, noEffect)
	}
	list := sharedDicts.Get(v)
	if len(list.bad) > 0 {
		out.Warn(sharedDicts, finding.InvalidValue, fmt.Sprintf("invalid entries %q: must be NAME: SIZE, with k or M, at most 200M", finding.ShortenList(list.bad)), noEffect)
	}
	if list.good > 0 {
		out.Warn(sharedDicts, finding.NoEffect, ownMemory, noEffect)
	}
}

// dictionaries are the entries of a list: how many could be a dictionary of ingress-nginx's, and
// those that could not.
type dictionaries struct {
	text string
	good int
	bad  []string
}

func (d dictionaries) String() string { return d.text }

const maxDictionaries = 100

// A size has up to 200 MiB, and without a unit is a number of them.
var (
	dictionary = regexp.MustCompile(`^[a-z_]{1,64}: *([0-9]{1,9})([kKmM]?)$`)
	maxSizes   = map[string]string{"": "200", "m": "200", "k": "204800"}
)

func parseDictionaries(text string) (dictionaries, error) {
	list := dictionaries{text: text}
	entries, err := feature.List(text)
	if err == nil && len(entries) > maxDictionaries {
		err = fmt.Errorf("must be at most %d entries", maxDictionaries)
	}
	if err != nil {
		return dictionaries{}, err
	}
	for _, entry := range entries {
		found := dictionary.FindStringSubmatch(entry)
		if found == nil || !fits(strings.TrimLeft(found[1], "0"), maxSizes[strings.ToLower(found[2])]) {
			list.bad = append(list.bad, entry)
			continue
		}
		list.good++
	}
	return list, nil
}

// fits compares numbers without leading zeros.
func fits(number, most string) bool {
	return number != "" && (len(number) < len(most) || len(number) == len(most) && number <= most)
}
