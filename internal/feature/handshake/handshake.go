// Package handshake has the settings of TLS handshakes: versions, ciphers, sessions.
// All hosts share one port, so most of them apply to the whole process; only the
// ciphers and their order may differ by host.
package handshake

import (
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/syntax/quantity"
)

const name = "handshake"

//go:embed *.lua
var lua embed.FS

// Bounds of sizes in bytes. NGINX has no cache below 8 pages.
const (
	minCache, maxCache   = 32 << 10, 1 << 30
	minBuffer, maxBuffer = 1 << 10, 1 << 20
)

// maxTimeout is far beyond the 7 days that TLS 1.3 allows.
const maxTimeout = 365 * 24 * time.Hour

var (
	versions = feature.Setting[model.TLSVersions]{
		Key: "ssl-protocols", Default: model.TLS12 | model.TLS13, Parse: model.NewTLSVersions, Scope: feature.ScopeProcess,
		Doc: "The TLS versions that clients may use.",
	}
	ciphers = feature.Setting[model.Ciphers]{
		Annotation: "ssl-ciphers", Parse: model.NewCiphers, OnInvalid: feature.Deny, Scope: feature.ScopeHost, Risk: feature.Low,
		Doc: "The ciphers of the host for TLS 1.2 and earlier, instead of those of the ConfigMap.",
	}
	allCiphers = feature.Setting[model.Ciphers]{
		Key: "ssl-ciphers", Default: model.IntermediateCiphers(), Parse: model.NewCiphers, Scope: feature.ScopeProcess,
		Doc: "The ciphers for TLS 1.2 and earlier. Empty: the defaults of the TLS library, in the client's order.",
	}
	preferServer = feature.Setting[string]{
		Annotation: "ssl-prefer-server-ciphers", Parse: order, Scope: feature.ScopeHost, Risk: feature.Low,
		Doc: "Uses the server's order of ciphers instead of the client's.",
	}
	curves = feature.Setting[model.Curves]{
		Key: "ssl-ecdh-curve", Parse: model.NewCurves, Scope: feature.ScopeProcess,
		Doc: "The key exchange groups, in order of preference. auto uses the defaults of the TLS library. Groups with MLKEM need OpenSSL 3.5.",
	}
	sessionCache = feature.Setting[bool]{
		Key: "ssl-session-cache", Default: true, Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Caches TLS sessions, so that clients can resume them.",
	}
	sessionCacheSize = feature.Setting[int64]{
		Key: "ssl-session-cache-size", Default: 10 << 20, Parse: quantity.Size(minCache, maxCache), Scope: feature.ScopeProcess,
		Doc: "The size of the session cache. 1 MB is enough for about 4,000 sessions.",
	}
	sessionTimeout = feature.Setting[time.Duration]{
		Key: "ssl-session-timeout", Default: 10 * time.Minute, Parse: timeout, Scope: feature.ScopeProcess,
		Doc: "Time for which a session can be resumed.",
	}
	sessionTickets = feature.Setting[bool]{
		Key: "ssl-session-tickets", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Issues TLS session tickets, so that sessions are stored by clients.",
	}
	ticketKey = feature.Setting[ticketKeys]{
		Key: "ssl-session-ticket-key", Parse: parseTicketKeys, Scope: feature.ScopeProcess,
		Doc: "Keys for session tickets, of 48 or 80 bytes in base64, separated by commas. Tickets are made with the first one, and those of the others are taken: put a new key before the old one. Replicas with the same keys take each other's tickets. Without it, NGINX makes a key at each reload.",
	}
	bufferSize = feature.Setting[int64]{
		Key: "ssl-buffer-size", Default: 4 << 10, Parse: quantity.Size(minBuffer, maxBuffer), Scope: feature.ScopeProcess,
		Doc: "The maximum size of a TLS record that is sent.",
	}
	earlyData = feature.Setting[bool]{
		Key: "ssl-early-data", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Accepts TLS 1.3 early data (0-RTT). An attacker can replay such requests.",
	}
	rejectHandshake = feature.Setting[bool]{
		Key: "ssl-reject-handshake", Parse: feature.Bool, Scope: feature.ScopeProcess,
		Doc: "Rejects TLS handshakes for names without an Ingress, instead of serving the default certificate.",
	}
)

// order reads whose order of ciphers decides.
func order(text string) (string, error) {
	server, err := feature.Bool(text)
	if err != nil {
		return "", err
	}
	if server {
		return "server", nil
	}
	return "client", nil
}

// timeout reads whole seconds: NGINX accepts no other times here.
func timeout(text string) (time.Duration, error) {
	d, err := quantity.Duration(text)
	if err != nil || d < time.Second || d > maxTimeout || d%time.Second != 0 {
		return 0, errors.New("must be a number with s, m, h or d (seconds without a unit), from one second to 365 days")
	}
	return d, nil
}

// Feature is how TLS connections are made.
func Feature() feature.Feature {
	return feature.Feature{
		Name: name,
		Doc:  "TLS handshakes: protocol versions, ciphers, sessions.",
		Settings: []feature.AnySetting{
			versions, ciphers, allCiphers, preferServer, curves, sessionCache, sessionCacheSize,
			sessionTimeout, sessionTickets, ticketKey, dhParam, bufferSize, earlyData, rejectHandshake,
		},
		Host:    ofHost,
		Process: ofProcess,
		Lua:     lua,
		Causes:  map[feature.Effect]string{feature.RejectUnknown: rejectHandshake.Key},
	}
}

// policy is what handshake.lua reads of a host. Without Order it is that of all hosts.
type policy struct {
	Ciphers string `json:"ciphers,omitempty"`
	Order   string `json:"order,omitempty"`
}

func ofHost(v feature.Values, out *feature.HostOut) {
	if p := (policy{ciphers.Get(v).String(), preferServer.Get(v)}); p != (policy{}) {
		out.TLS = p
	}
}

func ofProcess(v feature.Values, out *feature.ProcessOut) {
	out.Process.TLS = model.TLS{
		Versions: versions.Get(v), Ciphers: cipherList(v, out), Curves: groups(v, out),
		SessionTimeout: sessionTimeout.Get(v), Tickets: sessionTickets.Get(v), TicketKeys: keysFor(v, out), DHParam: dhFor(v, out), BufferSize: bufferSize.Get(v),
		EarlyData: earlyData.Get(v), RejectUnknown: rejectHandshake.Get(v),
	}
	if sessionCache.Get(v) {
		out.Process.TLS.SessionCache = sessionCacheSize.Get(v)
	}
}

// ticketKeys are keys, or why there are none. A finding about an invalid value would quote it.
type ticketKeys struct {
	keys model.TicketKeys
	bad  string
}

func (k ticketKeys) String() string { return k.keys.String() }

func parseTicketKeys(text string) (ticketKeys, error) {
	keys, err := model.NewTicketKeys(text)
	if err != nil {
		return ticketKeys{bad: err.Error()}, nil
	}
	return ticketKeys{keys: keys}, nil
}

// keysFor are the keys of tickets.
func keysFor(v feature.Values, out *feature.ProcessOut) model.TicketKeys {
	wanted := ticketKey.Get(v)
	if wanted.bad != "" {
		out.Reject(ticketKey, finding.InvalidValue, "invalid value: "+wanted.bad)
	}
	return wanted.keys
}

// groups sets the key exchange groups. NGINX rejects its configuration, this one and
// all later ones, if its TLS library lacks one of them.
func groups(v feature.Values, out *feature.ProcessOut) model.Curves {
	wanted := curves.Get(v)
	if hybrid := wanted.Hybrid(); hybrid != "" && !v.Has(feature.HybridGroups) {
		out.Reject(curves, finding.MissingCapability, fmt.Sprintf("this NGINX does not support the group %s, which needs OpenSSL 3.5 or later", hybrid))
		return curves.Default
	}
	return wanted
}

// cipherList sets the ciphers. NGINX rejects its configuration, this one and all later ones, if
// its TLS library knows none of them, and only the library knows the names.
func cipherList(v feature.Values, out *feature.ProcessOut) model.Ciphers {
	wanted := allCiphers.Get(v)
	if wanted == allCiphers.Default || wanted.String() == "" {
		return wanted
	}
	// NGINX reads the ciphers of servers with a certificate, or that need none.
	err := v.Try(feature.HTTPTrial("ssl_reject_handshake on;", fmt.Sprintf("ssl_ciphers %q;", wanted)))
	if err == nil {
		return wanted
	}
	if !feature.IsUntested(err) {
		err = errors.New("must have a name that OpenSSL knows, and after an @ only what it knows")
	}
	out.RejectTried(allCiphers, wanted.String(), err)
	return allCiphers.Default
}
