// Package unit packs the model into the bytes that the data plane keeps, as
// docs/data-plane-api.md describes them.
//
// Equal models give equal bytes, and a unit's version is a hash of its bytes:
// what did not change is not pushed and not decoded again.
package unit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"strconv"
	"strings"

	"github.com/headgate/headgate/internal/model"
)

// MaxOwner is the maximum length of a Unit's Owner, which is a DNS label.
const MaxOwner = 63

// A Unit is one packed piece of the model.
type Unit struct {
	Key
	// Owner is the namespace whose share of a worker's memory and time the unit takes,
	// empty if it belongs to none.
	Owner   string
	Version string
	Payload []byte
}

// FromHost packs a host.
func FromHost(h model.Host) Unit {
	p := PackedHost{TLS: packTLS(h), Routes: make([]PackedRoute, 0, len(h.Routes))}
	backends, locations, policies, traces, origins := list[string]{}, list[string]{}, list[string]{}, list[string]{}, list[model.Origin]{}
	for _, r := range h.Routes {
		packed := PackedRoute{
			Slash:      r.Slash,
			Default:    r.Default,
			Relative:   r.Relative,
			Unlogged:   r.Unlogged,
			Denied:     r.Denied,
			SatisfyAny: r.SatisfyAny,
			Location:   locations.add(r.Profile.Location(r.Variant)),
		}
		if r.Variant.Check != model.NoCheck {
			packed.Passed = locations.add(r.Profile.Location(r.Variant.Passed()))
		}
		switch r.Kind {
		case model.Exact:
			packed.Exact = r.Path
		case model.Prefix:
			packed.Prefix = r.Path
		case model.Pattern:
			packed.Pattern = r.Path
		}
		if r.Backend != "" {
			packed.Backend = backends.add(r.Backend)
		}
		if r.Fallback != "" {
			packed.Fallback = backends.add(r.Fallback)
		}
		if r.Origin != (model.Origin{}) {
			packed.Origin = origins.add(r.Origin)
		}
		if r.Trace.On {
			packed.Trace = traces.add(string(encode(packedTrace{r.Trace.Distrusts, r.Trace.Name})))
		}
		for _, policy := range r.Policies {
			packed.Policies = append(packed.Policies, policies.add(string(encodePolicy(policy))))
		}
		p.Routes = append(p.Routes, packed)
	}
	p.Backends, p.Locations = backends.values, locations.values
	for _, policy := range policies.values {
		p.Policies = append(p.Policies, json.RawMessage(policy))
	}
	for _, trace := range traces.values {
		p.Traces = append(p.Traces, json.RawMessage(trace))
	}
	for _, o := range origins.values {
		p.Origins = append(p.Origins, [2]string{o.Namespace, o.Ingress})
	}
	if len(h.Server) > 0 {
		p.Server = encodePolicies(h.Server)
	}
	return pack(Key{Host, h.Name}, h.Namespace, p)
}

// A PackedHost is the payload of a host.
type PackedHost struct {
	TLS       *packedTLS        `json:"tls,omitempty"`
	Server    []json.RawMessage `json:"server,omitempty"`
	Backends  []string          `json:"backends,omitempty"`
	Locations []string          `json:"locations,omitempty"`
	Policies  []json.RawMessage `json:"policies,omitempty"`
	Traces    []json.RawMessage `json:"traces,omitempty"`
	Origins   [][2]string       `json:"origins,omitempty"`
	Routes    []PackedRoute     `json:"routes"`
}

// packedTrace is what lua/headgate/tracing.lua reads of a route that is traced.
type packedTrace struct {
	Distrusts bool `json:"distrusts,omitempty"`
	Name      any  `json:"name,omitempty"`
}

// packedTLS is a host's TLS policies. Only sessions that were made under the
// same Sessions are resumed.
type packedTLS struct {
	Policies []json.RawMessage `json:"policies"`
	Sessions string            `json:"sessions"`
}

// packTLS packs policies. Sessions are kept apart by host and by policies: what
// was agreed on elsewhere, or before a change, does not come in by resumption.
func packTLS(h model.Host) *packedTLS {
	if len(h.TLS) == 0 {
		return nil
	}
	packed := packedTLS{Policies: encodePolicies(h.TLS)}
	sum := sha256.Sum256(append(encode(packed), h.Name...))
	packed.Sessions = hex.EncodeToString(sum[:16])
	return &packed
}

// A PackedRoute holds numbers that count from 1 into the lists of PackedHost.
type PackedRoute struct {
	Exact      string `json:"exact,omitempty"`
	Prefix     string `json:"prefix,omitempty"`
	Pattern    string `json:"pattern,omitempty"`
	Slash      bool   `json:"slash,omitempty"`
	Relative   bool   `json:"relative,omitempty"`
	Denied     bool   `json:"denied,omitempty"`
	Unlogged   bool   `json:"unlogged,omitempty"`
	SatisfyAny bool   `json:"satisfy_any,omitempty"`
	Backend    int    `json:"backend,omitempty"`
	Fallback   int    `json:"fallback,omitempty"`
	Default    bool   `json:"default,omitempty"`
	Location   int    `json:"location"`
	// Passed is the location of requests that the other service need not be
	// asked about, where Location asks one.
	Passed   int   `json:"passed,omitempty"`
	Origin   int   `json:"origin,omitempty"`
	Policies []int `json:"policies,omitempty"`
	// Trace is how requests are traced, 0 if they are not.
	Trace int `json:"trace,omitempty"`
}

// SameGuards reports whether two versions of a host have the same paths with the same
// policies and denials, and differ only in where requests go, and how.
func SameGuards(a, b Unit) bool {
	return bytes.Equal(guards(a), guards(b))
}

// guards are what two versions with the same guards have in common. A unit without a
// payload has nothing in common with others.
func guards(u Unit) []byte {
	var h PackedHost
	if err := json.Unmarshal(u.Payload, &h); err != nil {
		return []byte(u.Name + u.Version)
	}
	type route struct {
		PackedRoute
		Policies []json.RawMessage
		Checked  bool
	}
	var list []route
	for _, r := range h.Routes {
		checked := route{Checked: r.Passed > 0}
		for _, n := range r.Policies {
			if !isOfProfile(h.Policies[n-1]) {
				checked.Policies = append(checked.Policies, h.Policies[n-1])
			}
		}
		r.Backend, r.Fallback, r.Location, r.Passed, r.Origin, r.Trace, r.Policies, r.Unlogged = 0, 0, 0, 0, 0, 0, nil, false
		checked.PackedRoute = r
		list = append(list, checked)
	}
	return encode(struct {
		TLS    *packedTLS
		Server []json.RawMessage
		Routes []route
	}{h.TLS, h.Server, list})
}

// isOfProfile reports whether a policy goes with the profile, as the location does.
func isOfProfile(policy json.RawMessage) bool {
	var parts []json.RawMessage
	return json.Unmarshal(policy, &parts) == nil && len(parts) == 3
}

// FromName packs a name.
func FromName(n model.Name) Unit {
	return pack(Key{Name, n.Name}, n.Namespace, packName(n))
}

// A PackedName is the payload of a name.
type PackedName struct {
	Host        string          `json:"host"`
	Owner       string          `json:"owner,omitempty"`
	Redirect    bool            `json:"redirect,omitempty"`
	HasTLS      bool            `json:"has_tls,omitempty"`
	Certificate string          `json:"certificate,omitempty"`
	Covers      map[string]bool `json:"covers,omitempty"`
}

func packName(n model.Name) PackedName {
	p := PackedName{Host: n.Host, Owner: n.Owner, Redirect: n.Redirect, HasTLS: n.HasTLS, Certificate: n.Certificate}
	for _, name := range n.Covers {
		if p.Covers == nil {
			p.Covers = make(map[string]bool, len(n.Covers))
		}
		p.Covers[name] = true
	}
	return p
}

// FromNamePatterns packs the aliases that stand for more than one name.
func FromNamePatterns(p model.NamePatterns) Unit {
	packed := PackedPatterns{LeadingWildcards: map[string]PackedName{}, TrailingWildcards: map[string]PackedName{}}
	for _, n := range p.LeadingWildcards {
		packed.LeadingWildcards[strings.TrimPrefix(n.Name, "*")] = packName(n)
	}
	for _, n := range p.TrailingWildcards {
		packed.TrailingWildcards[strings.TrimSuffix(n.Name, "*")] = packName(n)
	}
	for _, n := range p.Regexes {
		packed.Regexes = append(packed.Regexes, PackedRegex{strings.TrimPrefix(n.Name, "~"), n.Namespace, n.Ingress, packName(n)})
	}
	return pack(PatternsKey, "", packed)
}

// PackedPatterns is the payload of the aliases for more than one name: it has ".example.com" for "*.example.com", and "www.example."
// for "www.example.*".
type PackedPatterns struct {
	LeadingWildcards  map[string]PackedName `json:"leading_wildcards,omitempty"`
	TrailingWildcards map[string]PackedName `json:"trailing_wildcards,omitempty"`
	Regexes           []PackedRegex         `json:"regexes,omitempty"`
}

// A PackedRegex is an alias that is a regular expression.
type PackedRegex struct {
	Pattern string `json:"pattern"`
	// Namespace is the one whose time the expression takes.
	Namespace string `json:"namespace,omitempty"`
	// Ingress is the one that has the alias, for findings.
	Ingress string `json:"ingress,omitempty"`
	PackedName
}

// packedEjection is what lua/headgate/health.lua and ejection.lua read of a backend.
type packedEjection struct {
	Off      bool   `json:"off,omitempty"`
	Share    int    `json:"share"`
	Failures int    `json:"failures,omitempty"`
	Statuses string `json:"statuses,omitempty"`
	Seconds  int    `json:"time,omitempty"`
}

// FromBackend packs a backend. Addresses are written as NGINX takes them, IPv6
// in brackets.
func FromBackend(b model.Backend) Unit {
	packed := struct {
		Endpoints   []string        `json:"endpoints"`
		Terminating []string        `json:"terminating,omitempty"`
		Picker      json.RawMessage `json:"picker,omitempty"`
		SlowStart   json.RawMessage `json:"slow_start,omitempty"`
		Ejection    *packedEjection `json:"ejection,omitempty"`
		RetryShare  *int            `json:"retry_share,omitempty"`
	}{Endpoints: addresses(b.Endpoints), Terminating: addresses(b.Terminating)}
	if b.Picker != (model.Policy{}) {
		packed.Picker = encodePolicy(b.Picker)
	}
	if e := b.Ejection; e != (model.Ejection{}) {
		packed.Ejection = &packedEjection{Off: e.Off, Share: cmp.Or(e.Share, model.EjectionShare), Failures: e.Failures, Statuses: e.Statuses, Seconds: e.Seconds}
	}
	if b.RetryBudget.Set {
		packed.RetryShare = &b.RetryBudget.Percent
	}
	if b.SlowStart != (model.Policy{}) {
		packed.SlowStart = encodePolicy(b.SlowStart)
	}
	namespace, _, _ := strings.Cut(b.Key, "/")
	return pack(Key{Backend, b.Key}, namespace, packed)
}

func addresses(list []netip.AddrPort) []string {
	texts := make([]string, len(list))
	for i, address := range list {
		texts[i] = address.String()
	}
	return texts
}

// FromCertificate packs a certificate under its hash, or under name if that is
// not empty.
func FromCertificate(name, owner string, c model.Certificate) Unit {
	packed := struct {
		Chain string `json:"chain"`
		Key   string `json:"key"`
		Hash  string `json:"hash,omitempty"`
	}{Chain: string(c.Chain), Key: string(c.Key)}
	if name == "" {
		name = c.Hash
	} else {
		packed.Hash = c.Hash
	}
	return pack(Key{Certificate, name}, owner, packed)
}

// FromOCSPResponse packs an OCSP answer under the hash of its certificate.
func FromOCSPResponse(s model.OCSPResponse) Unit {
	return pack(Key{OCSPResponse, s.Certificate}, "", struct {
		Response []byte `json:"response"`
		Until    int64  `json:"until"`
	}{s.Response, s.Until.Unix()})
}

// FromContent packs content, which is bytes already.
func FromContent(owner string, c model.Content) Unit {
	return owned(Key{Content, c.Name}, owner, c.Bytes)
}

// FromGlobals packs what holds for every request.
func FromGlobals(g model.Globals) Unit {
	return pack(GlobalsKey, "", struct {
		Policies     []json.RawMessage `json:"policies"`
		RedirectCode int               `json:"redirect_code,omitempty"`
		// StatusClients are in base64.
		StatusClients []byte         `json:"status_clients,omitempty"`
		Tracing       *packedTracing `json:"tracing,omitempty"`
	}{encodePolicies(g.Policies), g.Process.RedirectCode, g.Process.StatusClients.Bytes, packTracing(g.Process.Tracing)})
}

func encodePolicies(list []model.Policy) []json.RawMessage {
	encoded := make([]json.RawMessage, len(list))
	for i, p := range list {
		encoded[i] = encodePolicy(p)
	}
	return encoded
}

func encodePolicy(p model.Policy) []byte {
	end := "]"
	if p.OfProfile {
		end = ",true]"
	}
	return []byte("[" + strconv.Quote(p.Feature) + "," + string(encode(p.Value)) + end)
}

func pack(key Key, owner string, value any) Unit {
	return owned(key, owner, bytes.Clone(encode(value))) // Encoding leaves room behind it, which would stay.
}

// owned makes a unit of a payload. What can't be a namespace, as in the key of a backend
// that an Ingress only names, owns nothing.
func owned(key Key, owner string, payload []byte) Unit {
	if len(owner) > MaxOwner || strings.Trim(owner, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		owner = ""
	}
	return Unit{Key: key, Owner: owner, Version: VersionOf(payload, owner), Payload: payload}
}

// A list numbers the distinct values that are added to it, from 1.
type list[T comparable] struct {
	values  []T
	numbers map[T]int
}

func (l *list[T]) add(value T) int {
	if n, ok := l.numbers[value]; ok {
		return n
	}
	if l.numbers == nil {
		l.numbers = map[T]int{}
	}
	l.values = append(l.values, value)
	l.numbers[value] = len(l.values)
	return len(l.values)
}
