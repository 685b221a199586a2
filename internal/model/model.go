// Package model is what Headgate serves, as plain data: hosts with their routes and
// names, backends and certificates.
//
// It knows neither Kubernetes nor NGINX. Package build makes it, package plan
// turns it into bytes.
package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strings"
	"time"
)

// DefaultHost is the name of the host that answers for every name that no
// other host owns, and for requests without a name.
const DefaultHost = "_"

// A Host is the routes that answer for one rule host: "shop.example.com",
// "*.example.com" or DefaultHost.
type Host struct {
	Name string
	// Namespace is that of the oldest Ingress with the host, whose share of NGINX's
	// memory and time it takes; empty if there is none.
	Namespace string
	// TLS is what the features do in TLS handshakes for the host, in the order of
	// the feature list.
	TLS []Policy
	// Server is what runs before a route is looked for: the policies that all routes have,
	// and those that are for this alone. Nil unless there is one of these.
	Server []Policy
	// Passthrough is the key of the backend that TLS connections for the host are passed
	// through to, empty if NGINX serves them. It is not pushed.
	Passthrough string
	// Contents are what these policies, and those of all routes, refer to by name.
	Contents []Content
	// Routes are in the order in which patterns are tried.
	Routes []Route
}

// A PathKind says how a route's path is compared.
type PathKind int

const (
	// Exact matches the path and nothing else.
	Exact PathKind = iota
	// Prefix matches the path and the paths below it, element by
	// element: "/foo" matches "/foo" and "/foo/bar", not "/foobar".
	Prefix
	// Pattern matches what a regular expression finds, with letters of either
	// case. A host with one such route has no others, and the first that
	// matches answers.
	Pattern
)

func (k PathKind) String() string {
	return [...]string{"exact", "prefix", "pattern"}[k]
}

// A Route is one match rule of a host and what happens to the requests that it
// matches.
type Route struct {
	Kind PathKind
	// Path is compared with a request's path as NGINX normalises it: decoded,
	// with dots resolved and slashes merged. It starts with a slash. A Prefix
	// path other than "/" has none at its end; Slash says that it was written
	// with one. A Pattern's path is the expression, "^" at its start included.
	Path string
	// Slash is set on a Prefix route that was written with a slash at its
	// end. It answers below its path, and a request for the path itself is
	// redirected there. If another Prefix route has the same path without the
	// slash, that one answers for the path itself, and this one below it.
	Slash bool
	// Backend is the key of the backend, see BackendKey; empty for the built-in
	// default backend (404).
	Backend string
	// Fallback is the key of the backend that answers while Backend has no endpoint.
	// It gets the name of Backend in headers. Empty for none.
	Fallback string
	// Default is set where Backend is the default backend: without an endpoint
	// it answers as the built-in one.
	Default bool
	// Relative leaves scheme and host out of redirects that Headgate makes to
	// another path of the host.
	Relative bool
	// Unlogged is set where requests have no line in the access log.
	Unlogged bool
	// Denied is set where access control could not be set up. The route answers 503.
	Denied bool
	// SatisfyAny is set where a request must pass one of the auth checks instead of
	// all. It has no effect on a route without auth checks.
	SatisfyAny bool
	// Profile has the settings that NGINX takes only in nginx.conf.
	Profile Profile
	// Variant is what the profile's location does in addition.
	Variant Variant
	// Policies are what the features do on this route, in the order of the
	// feature list.
	Policies []Policy
	// Contents are what the policies refer to by name.
	Contents []Content
	// Files are what the profile names as files.
	Files []Content
	// Trace says how requests are traced.
	Trace Trace
	// Origin names the Ingress that the route came from.
	Origin Origin
}

// Written is the path as the rule has it.
func (r *Route) Written() string {
	if r.Slash {
		return r.Path + "/"
	}
	return r.Path
}

// A Policy is the value of one feature on one route: plain data with one encoding in
// JSON (no maps, no pointers to shared state).
type Policy struct {
	Feature string
	Value   any
	// OfProfile is set where the profile has a digest of the value, or the value itself: it
	// guards nothing, and belongs to no other profile.
	OfProfile bool
}

// A Content is bytes that the policies of many routes may refer to by its name,
// in a form that is their feature's. Equal bytes have equal names.
type Content struct {
	Name  string
	Bytes Confidential
}

// NewContent names bytes that are too many, or too secret, for policies. The data
// plane keeps equal content of several routes and hosts once, and never shows it.
func NewContent(bytes []byte) Content {
	sum := sha256.Sum256(bytes)
	return Content{Name: hex.EncodeToString(sum[:]), Bytes: bytes}
}

// A Canary is a backend that gets some of a route's requests.
type Canary struct {
	// Backend is its key.
	Backend string `json:"backend"`
	// Except are paths whose requests it does not get, nor those of paths below them.
	Except []string `json:"except,omitempty"`
	// When says which requests it gets, in the form of the feature with the policy.
	When any `json:"when"`
}

// An Origin is the Ingress that a route was written in, for logs and metrics,
// and to know which of several is the oldest.
type Origin struct {
	Namespace, Ingress string
	Created            time.Time
}

// CompareAge puts the Ingress first that wins a conflict: the older, and of two
// equally old the one whose namespace/name comes later in the alphabet, as
// ingress-nginx has it. What no Ingress asked for comes before all of them.
func (o Origin) CompareAge(other Origin) int {
	switch {
	case o == other:
		return 0
	case o.Ingress == "":
		return -1
	case other.Ingress == "":
		return 1
	}
	return cmp.Or(o.Created.Compare(other.Created), strings.Compare(other.fullName(), o.fullName()))
}

func (o Origin) fullName() string { return o.Namespace + "/" + o.Ingress }

// A Name is a server name and what answers for it. Which host a name leads to
// and which certificate it shows are looked up apart: a name without a
// certificate may be covered by the wildcard above it.
type Name struct {
	Name string
	// Host is the name of the host that owns the name.
	Host string
	// Owner is the namespace that the name belongs to, empty where names belong to none.
	// The certificate of a wildcard is shown for names below it of the same Owner only.
	Owner string
	// Redirect sends requests for the name to the Host's own.
	Redirect bool
	// HasTLS is set where an Ingress of the host has a TLS section, even if that does
	// not list the name or its certificate could not be used.
	HasTLS bool
	// Certificate is the hash of the certificate that the name shows, or
	// empty for the default certificate.
	Certificate string
	// Covers are the only names for which an alias for several has TLS and the Certificate.
	Covers []string
	// Namespace is that of the oldest Ingress with the name, whose share of NGINX's
	// memory and time it takes; empty if there is none.
	Namespace string
	// Ingress is that Ingress.
	Ingress string
}

// A Backend is a Service port with its endpoints.
type Backend struct {
	Key string
	// Endpoints are sorted and without duplicates.
	Endpoints []netip.AddrPort
	// Terminating are further ones for the sessions that they have: they are about to
	// end. There are none without Balancing.Sessions.
	Terminating []netip.AddrPort
	Balancing
	// Health is that of the endpoints as Balancing.Check finds it. The data plane does not
	// get it.
	Health Health
}

// FirstPort is the port of a backend that means the first port of its Service.
const FirstPort = ""

// BackendKey names a backend as the Ingress writes its port, or by FirstPort.
func BackendKey(namespace, service, port string) string {
	return namespace + "/" + service + "/" + port
}

// DefaultCertificate is the name under which the default certificate is known
// to the data plane.
const DefaultCertificate = "default"

// A Certificate is a chain with its key, both PEM.
type Certificate struct {
	// Hash is the hash of the content, and the certificate's name.
	Hash  string
	Chain []byte
	Key   PrivateKey
	// Secret is where it stands, as "namespace/name", one of several with the
	// same content; empty for a certificate that Headgate made.
	Secret string
}

// An OCSPResponse is sent with a certificate: it proves that the certificate is not revoked.
type OCSPResponse struct {
	// Certificate is the certificate's hash.
	Certificate string
	// Response is in DER.
	Response []byte
	// Until is when it expires.
	Until time.Time
}

// A Confidential is bytes that don't print themselves.
type Confidential []byte

// String keeps secrets out of logs and test output.
func (Confidential) String() string { return "[redacted]" }

// GoString keeps secrets out of %#v.
func (Confidential) GoString() string { return "[redacted]" }

// A PrivateKey is a key that does not print itself.
type PrivateKey = Confidential

// Globals are the settings of all requests.
type Globals struct {
	// Policies hold, for each feature that has any, its settings that do not
	// belong to a route, in the order of the feature list.
	Policies []Policy
	// Process are the settings of the NGINX process.
	Process Process
	// Default is the profile of a route without any annotation.
	Default Profile
	// Files are what it names as files.
	Files []Content
	// Common are profiles that many Ingresses ask for, and Occasional those that some do.
	Common, Occasional []Profile
	// Unguarded is set where a text of the administrator is missing that may control access: all
	// requests are refused.
	Unguarded bool
}
