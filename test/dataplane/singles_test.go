package dataplane_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// A single is a guard by itself: it refuses the clients of one kind.
type single struct {
	name        string
	annotations []string
	// spoil makes of a client that may pass one that is refused.
	spoil func(c *caller)
	// asks: it asks who the client is, as paths that need no authentication don't. lists: its
	// addresses are an auth check too. grants: with satisfy: any it can let a client in.
	asks, lists, grants bool
	// everywhere: all of the host has it, or all hosts.
	everywhere bool
	// limits: the client is refused for what it has sent before.
	limits bool
	// broken are annotations with which no client may pass.
	broken map[string][]string
}

// checks reports whether satisfy counts.
func (s single) checks() bool { return s.asks || s.lists }

// byKeys are the keys of guards that all hosts have, or all without notGlobal.
var byKeys = []string{
	"global-auth-url: http://ADDRESS/global", "block-cidrs: 127.0.0.5", "block-user-agents: ~*evil", "block-referers: https://evil.test/",
}

const (
	notGlobal   = "enable-global-auth: false"
	limitsOther = "limit-allowlist: 127.0.0.2,127.0.0.3,127.0.0.4,127.0.0.5"
	refusesSome = "SecRuleEngine On\nSecRule REQUEST_HEADERS:X-Attack \"@streq yes\" \"id:1,phase:1,deny,status:403\""
)

// singles are all kinds of guard.
var singles = []single{
	{
		name: "basic", annotations: users, asks: true, grants: true, spoil: with("Authorization", "Basic dXNlcjpubw=="),
		broken: map[string][]string{"value": {"auth-type: basic", "auth-secret: users", "auth-secret-type: x"}, "secret": {"auth-type: basic", "auth-secret: missing"}},
	},
	{
		name: "digest", annotations: []string{"auth-type: digest", "auth-secret: digests", "auth-realm: here"}, asks: true, grants: true,
		spoil:  func(c *caller) { c.digest = false },
		broken: map[string][]string{"secret": {"auth-type: digest", "auth-secret: empty"}},
	},
	{
		name: "url", annotations: []string{"auth-url: http://ADDRESS/check"}, asks: true, grants: true, spoil: with("X-Token", "no"),
		broken: map[string][]string{"value": {"auth-url: http://ADDRESS/{x}"}, "down": {"auth-url: http://127.0.0.1:1/check"}},
	},
	{
		name: "url-cached", annotations: []string{"auth-url: http://ADDRESS/check", "auth-cache-key: $http_x_token", "auth-cache-duration: 200 401 10h"},
		asks: true, grants: true, spoil: with("X-Token", "no"),
	},
	{name: "global", asks: true, grants: true, everywhere: true, spoil: with("X-Global", "no")},
	{
		name: "allow", annotations: []string{"allowlist-source-range: 127.0.0.2,127.0.0.6/31"}, lists: true, grants: true, spoil: from("127.0.0.3"),
		broken: map[string][]string{"value": {"allowlist-source-range: 127.0.0.2,nonsense"}},
	},
	{
		name: "deny", annotations: []string{"denylist-source-range: 127.0.0.4"}, lists: true, spoil: from("127.0.0.4"),
		broken: map[string][]string{"value": {"denylist-source-range: 127.0.0.4,nonsense"}},
	},
	{name: "cidr", everywhere: true, spoil: from("127.0.0.5")},
	{name: "agent", everywhere: true, spoil: with("User-Agent", "an evil one")},
	{name: "referer", everywhere: true, spoil: with("Referer", "https://evil.test/")},
	{
		name: "rate", annotations: []string{"limit-rpm: 1", "limit-burst-multiplier: 3", limitsOther}, limits: true,
		spoil:  func(c *caller) { c.address, c.again = "127.0.0.6", true },
		broken: map[string][]string{"value": {"limit-rpm: 1r/m"}},
	},
	{
		name: "connections", annotations: []string{"limit-connections: 1", limitsOther}, limits: true,
		spoil:  func(c *caller) { c.address, c.busy = "127.0.0.7", true },
		broken: map[string][]string{"value": {"limit-connections: 1", "limit-allowlist: 127.0.0.2,nonsense"}},
	},
	{
		name: "certificate", annotations: []string{"auth-tls-secret: default/authorities"}, everywhere: true, spoil: func(c *caller) { c.certificate = "stranger" },
		broken: map[string][]string{"value": {"auth-tls-secret: default/authorities", "auth-tls-match-cn: CN=("}, "secret": {"auth-tls-secret: default/missing"}},
	},
	{
		name: "subject", annotations: []string{"auth-tls-secret: default/authorities", "auth-tls-match-cn: CN=client"}, everywhere: true,
		spoil: func(c *caller) { c.certificate = "other" },
	},
	{
		name: "modsecurity", annotations: []string{"enable-modsecurity: true", "modsecurity-snippet: " + refusesSome}, spoil: with("X-Attack", "yes"),
		broken: map[string][]string{"value": {"enable-modsecurity: true", "modsecurity-snippet: SecRuleScript /x.lua"}},
	},
}

// excludes reports whether two guards can't stand beside each other.
func (s single) excludes(other single) bool {
	return s.kind() == other.kind() || differ(s.annotations, other.annotations)
}

// differ reports whether two lists have an annotation with other values.
func differ(some, others []string) bool {
	for _, a := range some {
		name, _, _ := strings.Cut(a, ": ")
		for _, b := range others {
			if b != a && strings.HasPrefix(b, name+": ") {
				return true
			}
		}
	}
	return false
}

// kind is the name of a guard, broken or not.
func (s single) kind() string {
	kind, _, _ := strings.Cut(s.name, "-")
	return kind
}

// brokenSingles are the guards that no client may pass, NAME-KIND.
func brokenSingles() []single {
	var list []single
	for _, s := range singles {
		for _, kind := range slices.Sorted(maps.Keys(s.broken)) {
			b := s
			b.name, b.annotations, b.spoil = s.name+"-"+kind, s.broken[kind], nil
			list = append(list, b)
		}
	}
	return list
}

// A caller is a client of guarded hosts.
type caller struct {
	header  [6]string
	address string
	// digest: it answers a challenge of Digest.
	digest bool
	// certificate is the name of what it shows.
	certificate string
	// again: it has sent too many requests. busy: it waits for an answer already.
	again, busy bool
}

// callerHeaders are the headers of callers.
var callerHeaders = [6]string{"Authorization", "X-Token", "X-Global", "User-Agent", "Referer", "X-Attack"}

// passing may pass all guards.
var passing = caller{
	header: [6]string{password.Get("Authorization"), "ok", "ok", "good", "", ""}, address: "127.0.0.2", digest: true, certificate: "client",
}

func with(name, value string) func(*caller) {
	return func(c *caller) {
		if i := slices.Index(callerHeaders[:], name); i >= 0 {
			c.header[i] = value
		}
	}
}

func from(address string) func(*caller) { return func(c *caller) { c.address = address } }

// headers are those of its requests.
func (c caller) headers() http.Header {
	header := http.Header{}
	for i, name := range callerHeaders {
		if c.header[i] != "" {
			header.Set(name, c.header[i])
		}
	}
	return header
}
