package explain

import (
	"encoding/json"
	"time"

	"github.com/headgate/headgate/internal/finding"
)

// An Explanation is what would become of a request and why. docs/explain.md
// describes its JSON form.
type Explanation struct {
	Request Request `json:"request"`
	// Answers are what the client gets, by the scheme of the URL and then by
	// the other one.
	Answers []Answer `json:"answers"`
	// Name is nil where the request is refused before it has one.
	Name *Name `json:"name,omitempty"`
	// Unserved are Ingresses for the name that are not served.
	Unserved []Unserved `json:"unserved,omitempty"`
	// Patterns say why the host's paths are regular expressions.
	Patterns []Cause `json:"patterns,omitempty"`
	// Route is the one that won, nil if none did.
	Route *Route `json:"route,omitempty"`
	// Plain is the one that would have won were the paths no regular
	// expressions, where that is another one.
	Plain *Rule `json:"plain,omitempty"`
	// Lost are the rules that have something to do with the path and did not
	// win. More is how many of them were left out.
	Lost        []Lost            `json:"lost,omitempty"`
	More        int               `json:"more,omitempty"`
	Policies    []Policy          `json:"policies,omitempty"`
	Profile     *Profile          `json:"profile,omitempty"`
	Backends    []Backend         `json:"backends,omitempty"`
	Certificate *Certificate      `json:"certificate,omitempty"`
	Findings    []finding.Finding `json:"findings"`
	// Elsewhere is how many findings there are of other manifest files. What
	// could not be read there may belong to what is told here.
	Elsewhere int `json:"elsewhere,omitempty"`
	// Units are what the data plane needs for the request.
	Units []Unit `json:"units,omitempty"`
	// DataPlane is what NGINX has of them, nil where nobody asked it.
	DataPlane *DataPlane `json:"data_plane,omitempty"`
}

// A Request is what was asked about, as NGINX reads it.
type Request struct {
	URL    string `json:"url"`
	Method string `json:"method"`
	Scheme string `json:"scheme"`
	// Host is the name that is routed by, TLSName the one of the handshake.
	Host    string `json:"host"`
	TLSName string `json:"tls_name"`
	// Path is decoded and cleaned, as routes are compared with it.
	Path    string              `json:"path"`
	Query   string              `json:"query,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
	From    string              `json:"from,omitempty"`

	uri, authority string
}

// An Answer is what a client gets.
type Answer struct {
	Scheme string `json:"scheme"`
	// Ends is set where the TLS handshake ends, so that there is no answer.
	Ends bool `json:"ends,omitempty"`
	// Status is what Headgate answers by itself, 0 where a backend answers.
	Status   int    `json:"status,omitempty"`
	Location string `json:"location,omitempty"`
	// Backend is the one that answers, and Endpoints how many it has.
	Backend   string `json:"backend,omitempty"`
	Endpoints int    `json:"endpoints,omitempty"`
	Why       string `json:"why"`
}

// How a name was found.
const (
	ByRule     = "rule"
	ByWildcard = "wildcard"
	ByAlias    = "alias"
	ByPattern  = "pattern"
	ByTwin     = "twin"
	ByDefault  = "default"
)

// A Name says whose the request's name is.
type Name struct {
	// Name is what answers for the name, as it is written.
	Name string `json:"name"`
	By   string `json:"by"`
	Host string `json:"host"`
	// Ingresses are those that give it: of a rule's host all that name it, the
	// oldest first, else the one that has the alias.
	Ingresses []string `json:"ingresses,omitempty"`
	Why       string   `json:"why"`
	// Lost are claims that stand for the name too, or nearly.
	Lost []Claim `json:"lost,omitempty"`
}

// A Claim is a name that an Ingress has or wants.
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

// A Rule is what asks for a route.
type Rule struct {
	// Ingress and Field are empty for the route that no rule asks for.
	Ingress string `json:"ingress,omitempty"`
	Field   string `json:"field,omitempty"`
	// PathType and Path are as written.
	PathType string `json:"path_type,omitempty"`
	Path     string `json:"path"`
	// Matches says how requests are compared with it: exact, prefix or pattern,
	// and what with.
	Matches string `json:"matches"`
	Backend string `json:"backend,omitempty"`
}

// A Route is the rule that won.
type Route struct {
	Rule
	Why string `json:"why"`
	// Denied is set where the route answers 503 whatever is asked.
	Denied bool `json:"denied,omitempty"`
	// AnyJudge is set where one of those is enough that ask who a client is.
	AnyJudge bool `json:"any_judge,omitempty"`
	// Carries are the policies as the data plane gets them.
	Carries []Carried `json:"carries,omitempty"`
}

// A Carried is a policy as the data plane gets it.
type Carried struct {
	Feature string          `json:"feature"`
	Value   json.RawMessage `json:"value"`
}

// What became of a rule that did not win.
const (
	// Outranked rules match the path too.
	Outranked = "outranked"
	// Refused rules are not served at all.
	Refused = "refused"
	// Missed rules look alike, but don't match.
	Missed = "missed"
)

// A Lost is a rule that did not win.
type Lost struct {
	Rule
	Outcome string `json:"outcome"`
	// To is the Ingress that it lost to, empty if it lost to none.
	To  string `json:"to,omitempty"`
	Why string `json:"why"`
}

// A Policy is one setting that holds on the route.
type Policy struct {
	Feature string `json:"feature"`
	// Setting is the annotation without its prefix, or the key.
	Setting string `json:"setting"`
	Value   string `json:"value"`
	// From is annotation, key or default, and Object the object that has it.
	From   string `json:"from"`
	Object string `json:"object,omitempty"`
	// Written is the text of the annotation. Where Refused is set it does not
	// count, and where Denies is set it denies the route.
	Written string `json:"written,omitempty"`
	Refused bool   `json:"refused,omitempty"`
	Denies  bool   `json:"denies,omitempty"`
}

// A Profile is the route's static settings.
type Profile struct {
	Name string `json:"name"`
	// Default is set for the profile of routes without annotations. Other
	// profiles differ from it in Differs.
	Default bool         `json:"default"`
	Differs []Difference `json:"differs,omitempty"`
}

// A Difference is a setting of a profile.
type Difference struct {
	Setting string `json:"setting"`
	Value   string `json:"value"`
	Default string `json:"default"`
}

// Which place a backend has on a route.
const (
	OwnBackend      = "route"
	FallbackBackend = "fallback"
	DefaultBackend  = "default"
	// Alternatives are asked in the place of the route's own where a policy says
	// so.
	AlternativeBackend = "alternative"
)

// A Backend is one that the route may ask.
type Backend struct {
	Key  string `json:"key"`
	Role string `json:"role"`
	// Service says what the Service is: its type and port.
	Service string `json:"service"`
	// Asked are the addresses that get requests.
	Asked     []string   `json:"asked"`
	Endpoints []Endpoint `json:"endpoints,omitempty"`
	// Owner is the Ingress that decides on the backend's settings.
	Owner    string   `json:"owner,omitempty"`
	Settings []Policy `json:"settings,omitempty"`
	// Of an alternative: the Ingress and its field that ask for it, when it is
	// asked, and what part of requests such as this one it gets by chance, from
	// 0 to 1.
	Ingress string  `json:"ingress,omitempty"`
	Field   string  `json:"field,omitempty"`
	When    string  `json:"when,omitempty"`
	Share   float64 `json:"share,omitempty"`
	// Why says why nothing is asked, empty where something is.
	Why string `json:"why,omitempty"`
}

// An Endpoint is an address of the Service.
type Endpoint struct {
	Address string `json:"address"`
	Slice   string `json:"slice"`
	State   string `json:"state"`
	Asked   bool   `json:"asked"`
	Why     string `json:"why,omitempty"`
}

// A Certificate is the one that clients are shown.
type Certificate struct {
	// Default is set for the default certificate. Where neither that nor Secret
	// is, none is shown.
	Default bool `json:"default"`
	// Secret, Ingress and Field say where it comes from, or where the one that
	// is not shown was to come from.
	Secret string `json:"secret,omitempty"`
	// DefaultSecret has the default certificate, where that is shown and is not
	// the one that Headgate makes.
	DefaultSecret string   `json:"default_secret,omitempty"`
	Ingress       string   `json:"ingress,omitempty"`
	Field         string   `json:"field,omitempty"`
	Names         []string `json:"names,omitempty"`
	// NotBefore and NotAfter bound when it is valid.
	NotBefore *time.Time `json:"not_before,omitempty"`
	NotAfter  *time.Time `json:"not_after,omitempty"`
	// Why says why it is this one.
	Why string `json:"why"`
	// Problem is what a client will not like, empty if nothing.
	Problem string `json:"problem,omitempty"`
}

// A Unit is one that the data plane needs for the request.
type Unit struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// A DataPlane is what NGINX has.
type DataPlane struct {
	// Problem says why nothing is known, empty if all is.
	Problem    string `json:"problem,omitempty"`
	Generation int    `json:"generation"`
	Loaded     bool   `json:"loaded"`
	Draining   bool   `json:"draining"`
	// Units are those of the Explanation, as the shared memory has them.
	Units   []Stored `json:"units"`
	Workers []Worker `json:"workers"`
}

// A Stored is a unit in the shared memory.
type Stored struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Version is empty where the unit is not there.
	Version string `json:"version,omitempty"`
	// Needs is the first generation that can use the unit.
	Needs int `json:"needs"`
	// Current is set where it is the version of the Explanation.
	Current bool `json:"current"`
}

// A Worker is a process of NGINX, with what it has decoded.
type Worker struct {
	PID        int `json:"pid"`
	Generation int `json:"generation"`
	// Silent is set for one that did not answer.
	Silent bool   `json:"silent,omitempty"`
	Units  []Held `json:"units,omitempty"`
}

// A Held is a unit as a worker holds it. A worker decodes a unit when a request
// first needs it, and looks for a newer version at each request.
type Held struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Version is empty where the worker holds none yet.
	Version string `json:"version,omitempty"`
	Current bool   `json:"current"`
	// Error says why the worker can't use the newest version.
	Error string `json:"error,omitempty"`
}
