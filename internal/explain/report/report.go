// Package report is what an explanation says: plain data, with one encoding in JSON.
package report

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/finding"
)

// An Explanation is how a request is handled, and why. docs/explain.md describes
// its JSON form.
type Explanation struct {
	Request Request `json:"request"`
	// Client is nil if the connection says who asks.
	Client *Client `json:"client,omitempty"`
	// Answers are what the client gets: first by the scheme of the URL, then by the
	// other one.
	Answers []Answer `json:"answers"`
	// Name is nil if the request is rejected before its name is known.
	Name *Name `json:"name,omitempty"`
	// Unserved are Ingresses for the name that are not served.
	Unserved []Unserved `json:"unserved,omitempty"`
	// Patterns say why the host's paths are regular expressions.
	Patterns []Cause `json:"patterns,omitempty"`
	// Route is the one that won, or nil.
	Route *Route `json:"route,omitempty"`
	// Plain is the route that would have won if the paths were not regular
	// expressions, if it is another one.
	Plain *Rule `json:"plain,omitempty"`
	// Lost are the rules that are related to the path and did not win. More is the
	// number of those left out.
	Lost        []Lost            `json:"lost,omitempty"`
	More        int               `json:"more,omitempty"`
	Policies    []Policy          `json:"policies,omitempty"`
	Profile     *Profile          `json:"profile,omitempty"`
	Backends    []Backend         `json:"backends,omitempty"`
	Certificate *Certificate      `json:"certificate,omitempty"`
	Findings    []finding.Finding `json:"findings"`
	// MoreFindings is the number of those that were left out, on the web page alone.
	MoreFindings int `json:"more_findings,omitempty"`
	// Elsewhere is the number of findings of other manifest files. What could not
	// be read there may be related to the request.
	Elsewhere int `json:"elsewhere,omitempty"`
	// Units are what the data plane needs for the request.
	Units []Unit `json:"units,omitempty"`
	// DataPlane is the state of NGINX, or nil if it was not queried.
	DataPlane *DataPlane `json:"data_plane,omitempty"`
	// Edges are the states of the NGINX of each edge, if it is apart.
	Edges []Edge `json:"edges,omitempty"`
	// MoreEdges is the number of those that were left out, on the web page alone.
	MoreEdges int `json:"more_edges,omitempty"`
}

// An Edge is an NGINX that is apart from the controller.
type Edge struct {
	Name string `json:"name"`
	DataPlane
}

// Current reports whether it is known that this NGINX has the newest versions.
func (d DataPlane) Current() bool {
	return d.Problem == "" && d.Loaded && !slices.ContainsFunc(d.Units, func(u Stored) bool { return !u.Current })
}

// A Request is the request, as NGINX reads it.
type Request struct {
	URL    string `json:"url"`
	Method string `json:"method"`
	Scheme string `json:"scheme"`
	// Host is the name for routing, TLSName that of the handshake.
	Host    string `json:"host"`
	TLSName string `json:"tls_name"`
	// Path is decoded and normalized, as it is compared with routes.
	Path    string              `json:"path"`
	Query   string              `json:"query,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
	From    string              `json:"from,omitempty"`
}

// A Client is whose request it is, where that is not said by the connection alone.
type Client struct {
	// Address is empty if it is not known, and Scheme if it is that of the connection.
	Address string `json:"address,omitempty"`
	Scheme  string `json:"scheme,omitempty"`
	Why     string `json:"why"`
}

// An Answer is what a client gets.
type Answer struct {
	Scheme string `json:"scheme"`
	// Ends is set if the TLS handshake fails, so that there is no response.
	Ends bool `json:"ends,omitempty"`
	// Status is the status of a response by Headgate, 0 if a backend responds.
	Status   int    `json:"status,omitempty"`
	Location string `json:"location,omitempty"`
	// Backend is the one that responds, and Endpoints the number of its endpoints.
	Backend   string `json:"backend,omitempty"`
	Endpoints int    `json:"endpoints,omitempty"`
	Why       string `json:"why"`
}

// How a name was found.
const (
	ByRule        = "rule"
	ByWildcard    = "wildcard"
	ByAlias       = "alias"
	ByPattern     = "pattern"
	ByWWWRedirect = "www_redirect"
	ByCanary      = "canary" // of claims only
	ByDefault     = "default"
)

// A Name is the name of the request, and what answers for it.
type Name struct {
	// Name is the rule, alias or pattern that matched, as written.
	Name string `json:"name"`
	By   string `json:"by"`
	Host string `json:"host"`
	// Ingresses are those with the name: for a rule's host all that have it, the
	// oldest first; otherwise the one with the alias.
	Ingresses []string `json:"ingresses,omitempty"`
	Why       string   `json:"why"`
	// Owner is the namespace that the name belongs to and why, nil where names belong to
	// none, and Refused are the Ingresses of others that ask for it.
	Owner   *Owner  `json:"owner,omitempty"`
	Refused []Claim `json:"refused,omitempty"`
	// Lost are other claims that match the name, or nearly do.
	Lost []Claim `json:"lost,omitempty"`
}

// An Owner is the namespace that a name belongs to.
type Owner struct {
	Namespace string `json:"namespace"`
	Ingress   string `json:"ingress"`
	Why       string `json:"why"`
}

// A Claim is a name that an Ingress claims.
type Claim struct {
	Name      string   `json:"name"`
	By        string   `json:"by"`
	Ingresses []string `json:"ingresses"`
	Why       string   `json:"why"`
}

// An Unserved is an Ingress that is not served.
type Unserved struct {
	Ingress string `json:"ingress"`
	Why     string `json:"why"`
}

// A Cause is a setting that makes a host's paths regular expressions.
type Cause struct {
	Ingress string `json:"ingress"`
	Path    string `json:"path"`
	Setting string `json:"setting"`
	Value   string `json:"value"`
}

// A Rule is the origin of a route.
type Rule struct {
	// Ingress and Field are empty for a route without a rule.
	Ingress string `json:"ingress,omitempty"`
	Field   string `json:"field,omitempty"`
	// PathType and Path are as written.
	PathType string `json:"path_type,omitempty"`
	Path     string `json:"path"`
	// Matches is how requests are compared with it: exact, prefix or pattern, and
	// the path.
	Matches string `json:"matches"`
	Backend string `json:"backend,omitempty"`
}

// A Route is the rule that won.
type Route struct {
	Rule
	Why string `json:"why"`
	// Denied is set if the route answers 503 to all requests.
	Denied bool `json:"denied,omitempty"`
	// SatisfyAny is set if passing one auth check is enough.
	SatisfyAny bool `json:"satisfy_any,omitempty"`
	// Carries are the policies as the data plane gets them.
	Carries []Carried `json:"carries,omitempty"`
}

// A Carried is a policy as the data plane gets it.
type Carried struct {
	Feature string          `json:"feature"`
	Value   json.RawMessage `json:"value"`
}

// Why a rule did not win.
const (
	// Outranked rules match the path too.
	Outranked = "outranked"
	// Rejected rules are not served at all.
	Rejected = "rejected"
	// Missed rules look similar, but don't match.
	Missed = "missed"
)

// A Lost is a rule that did not win.
type Lost struct {
	Rule
	Outcome string `json:"outcome"`
	// To is the Ingress that it lost to, if any.
	To  string `json:"to,omitempty"`
	Why string `json:"why"`
}

// A Policy is a setting that applies to the route.
type Policy struct {
	Feature string `json:"feature"`
	// Setting is the annotation without its prefix, or the key.
	Setting string `json:"setting"`
	Value   string `json:"value"`
	// From is annotation, key or default; Object is the object with it.
	From   string `json:"from"`
	Object string `json:"object,omitempty"`
	// By is the annotation with a directive that stands for this one, and Where says which:
	// empty if the annotation is written itself.
	By    string `json:"by,omitempty"`
	Where string `json:"where,omitempty"`
	// Written is the text of the annotation. If Rejected is set, it is not used; if
	// Denies is set, the annotation or, by From, the key denies the route.
	Written  string `json:"written,omitempty"`
	Rejected bool   `json:"rejected,omitempty"`
	Denies   bool   `json:"denies,omitempty"`
	// Idle is why the setting has no part in the request. Without it, and unless Rejected is set,
	// the setting is in force.
	Idle string `json:"idle,omitempty"`
}

// A Profile is the route's static settings.
type Profile struct {
	Name string `json:"name"`
	// Default is set for the profile of routes without annotations. Differs is how
	// other profiles differ from it.
	Default bool         `json:"default"`
	Differs []Difference `json:"differs,omitempty"`
}

// A Difference is a setting of a profile.
type Difference struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	Default string `json:"default"`
}

// The role of a backend on a route.
const (
	OwnBackend      = "route"
	FallbackBackend = "fallback"
	DefaultBackend  = "default"
	// A canary gets requests instead of the route's own backend if a policy chooses
	// it.
	CanaryBackend = "canary"
	// One for errors responds instead of them, and not while another one has no endpoint.
	ErrorBackend = "errors"
)

// A Backend is one that may get the request.
type Backend struct {
	Key  string `json:"key"`
	Role string `json:"role"`
	// Service is the type and port of the Service.
	Service string `json:"service"`
	// Used are the addresses that get requests.
	Used      []string   `json:"used"`
	Endpoints []Endpoint `json:"endpoints,omitempty"`
	// Unresolved is the DNS name whose addresses get requests, where it was not looked up: from
	// manifests alone, none is.
	Unresolved string `json:"unresolved,omitempty"`
	// Owner is the Ingress whose settings apply to the backend.
	Owner    string   `json:"owner,omitempty"`
	Settings []Policy `json:"settings,omitempty"`
	// The Ingress and field that declare a canary, when it is used, and its share of
	// requests such as this one, from 0 to 1.
	Ingress string  `json:"ingress,omitempty"`
	Field   string  `json:"field,omitempty"`
	When    string  `json:"when,omitempty"`
	Share   float64 `json:"share,omitempty"`
	// Why is the reason why no endpoint is used, if none is.
	Why string `json:"why,omitempty"`
}

// An Endpoint is an address of the Service.
type Endpoint struct {
	Address string `json:"address"`
	Slice   string `json:"slice"`
	State   string `json:"state"`
	Used    bool   `json:"used"`
	Why     string `json:"why,omitempty"`
}

// A Certificate is the one that is shown to clients.
type Certificate struct {
	// Default is set for the default certificate. If neither Default nor Secret is
	// set, none is shown.
	Default bool `json:"default"`
	// Secret, Ingress and Field are the origin of the certificate, or of the one that
	// can't be shown.
	Secret string `json:"secret,omitempty"`
	// DefaultSecret has the default certificate if that is shown and was not
	// generated by Headgate.
	DefaultSecret string   `json:"default_secret,omitempty"`
	Ingress       string   `json:"ingress,omitempty"`
	Field         string   `json:"field,omitempty"`
	Names         []string `json:"names,omitempty"`
	// NotBefore and NotAfter are the dates of the certificate.
	NotBefore *time.Time `json:"not_before,omitempty"`
	NotAfter  *time.Time `json:"not_after,omitempty"`
	// Why is the reason why it is this one.
	Why string `json:"why"`
	// Problem is why clients may reject it, if anything.
	Problem string `json:"problem,omitempty"`
}

// A Unit is one that the data plane needs for the request.
type Unit struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// A DataPlane is the state of NGINX.
type DataPlane struct {
	// Problem is why the state is unknown, if it is.
	Problem    string `json:"problem,omitempty"`
	Generation int    `json:"generation"`
	Loaded     bool   `json:"loaded"`
	Draining   bool   `json:"draining"`
	// Units are those of the Explanation, as in the shared memory.
	Units   []Stored `json:"units"`
	Workers []Worker `json:"workers"`
}

// A Stored is a unit in the shared memory.
type Stored struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Version is empty if the unit does not exist.
	Version string `json:"version,omitempty"`
	// Needs is the first generation that can use the unit.
	Needs int `json:"needs"`
	// Current is set if it is the version of the Explanation.
	Current bool `json:"current"`
}

// A Worker is a process of NGINX, with the units that it has decoded.
type Worker struct {
	PID        int `json:"pid"`
	Generation int `json:"generation"`
	// Silent is set if it did not respond.
	Silent bool   `json:"silent,omitempty"`
	Units  []Held `json:"units,omitempty"`
	// Ejected are the endpoints of the route's backends that the worker knows to fail.
	Ejected []Ejected `json:"ejected,omitempty"`
}

// An Ejected is an endpoint that is ejected in a worker.
type Ejected struct {
	Backend  string `json:"backend"`
	Endpoint string `json:"endpoint"`
	// Reason is connect (no connection can be made) or failures (requests failed in a row).
	Reason string `json:"reason"`
	// Until is when the endpoint is probed next, or is back.
	Until time.Time `json:"until"`
	// Avoided is false if too many endpoints of the backend are ejected: it gets requests.
	Avoided bool `json:"avoided"`
}

// A Held is a unit in a worker. A worker decodes a unit when a request first needs
// it, and looks for a newer version at each request.
type Held struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Version is empty if the worker has not decoded the unit yet.
	Version string `json:"version,omitempty"`
	Current bool   `json:"current"`
	// Error is why the worker can't use the newest version.
	Error string `json:"error,omitempty"`
}
