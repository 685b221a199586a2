package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/model/geo"
	"github.com/headgate/headgate/internal/model/logging"
	"github.com/headgate/headgate/internal/model/names"
)

// A Profile is the tuple of settings that NGINX takes only statically. Routes
// with equal profiles share one location; a new profile costs a reload.
//
// Which values it may have, features declare (package directive). Profiles
// compare with ==.
type Profile struct {
	Protocol Protocol
	// TLS uses TLS for requests to backends.
	TLS bool
	// AsClient, which needs HTTP and TLS, uses TLS only for requests that came over TLS.
	AsClient bool
	// Access runs the phase access of the route's policies, which may read the
	// request's body.
	Access bool
	// values are "name=number" or "name:text" in the order of the names, with a space
	// between them. A value of 0 is left out.
	values string
}

// A ProfileValue is a value of a declared name: a number, or text of digits, letters
// from a to f, and commas.
type ProfileValue struct {
	Name   string
	Number int64
	Text   string
}

// profileText is what the text of a value consists of.
const profileText = "0123456789abcdef,"

// String is the text or the number.
func (v ProfileValue) String() string {
	if v.Text != "" {
		return v.Text
	}
	return strconv.FormatInt(v.Number, 10)
}

// With is the profile with other values.
func (p Profile) With(values ...ProfileValue) Profile {
	all := p.Values()
	for _, v := range values {
		all = slices.DeleteFunc(all, func(old ProfileValue) bool { return old.Name == v.Name })
		if strings.Trim(v.Text, profileText) != "" {
			panic("model: a profile with the value " + v.Text)
		}
		if v.Number != 0 || v.Text != "" {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b ProfileValue) int { return strings.Compare(a.Name, b.Name) })
	var b []byte
	for i, v := range all {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, v.Name...)
		if v.Text != "" {
			b = append(append(b, ':'), v.Text...)
		} else {
			b = strconv.AppendInt(append(b, '='), v.Number, 10)
		}
	}
	p.values = string(b)
	return p
}

// Values are all but those that are 0, in the order of their names.
func (p Profile) Values() []ProfileValue {
	var list []ProfileValue
	for field := range strings.FieldsSeq(p.values) {
		v, err := readProfileValue(field)
		if err != nil {
			panic("model: a profile with the value " + field)
		}
		list = append(list, v)
	}
	return list
}

// Value is the number of that name.
func (p Profile) Value(name string) int64 { return p.Get(name).Number }

// Get is the value of that name.
func (p Profile) Get(name string) ProfileValue {
	for _, v := range p.Values() {
		if v.Name == name {
			return v
		}
	}
	return ProfileValue{Name: name}
}

// Equal compares with ==.
func (p Profile) Equal(other Profile) bool { return p == other }

// A Protocol is the protocol of requests to backends.
type Protocol int

// The protocols.
const (
	HTTP Protocol = iota
	GRPC
	FastCGI
)

func (p Protocol) String() string { return [...]string{"http", "grpc", "fastcgi"}[p] }

// Prefix is what the names of NGINX's directives begin with.
func (p Protocol) Prefix() string { return [...]string{"proxy_", "grpc_", "fastcgi_"}[p] }

// RetryConditions are the outcomes of a try after which a request is retried, with the
// names of NGINX's proxy_next_upstream.
type RetryConditions uint16

// The conditions. NonIdempotent is not an outcome: with it, POST, LOCK and PATCH
// requests are retried as well.
const (
	Failure RetryConditions = 1 << iota
	Timeout
	InvalidHeader
	Status500
	Status502
	Status503
	Status504
	Status403
	Status404
	Status429
	NonIdempotent
	// AllRetryConditions is all of them.
	AllRetryConditions RetryConditions = 1<<iota - 1
)

// retryConditionNames are in the order of the bits.
const retryConditionNames = "error timeout invalid_header http_500 http_502 http_503 http_504 http_403 http_404 http_429 non_idempotent"

// RetryConditionOf is the condition of NGINX's name, false if there is none.
func RetryConditionOf(name string) (RetryConditions, bool) {
	i := slices.Index(strings.Fields(retryConditionNames), name)
	return 1 << max(i, 0), i >= 0
}

// String are NGINX's names, "off" for the empty set.
func (c RetryConditions) String() string {
	return cmp.Or(Members(c, strings.Fields(retryConditionNames)), "off")
}

// Members are the names of the bits that are set, with a space between them.
func Members[Set ~int | ~int64 | ~uint16](set Set, names []string) string {
	var members []string
	for i, name := range names {
		if set&(1<<i) != 0 {
			members = append(members, name)
		}
	}
	return strings.Join(members, " ")
}

// Name is a name that only an equal profile has: equal tuples, equal names, on
// every replica and in every version that knows the same settings.
func (p Profile) Name() string {
	text := fmt.Appendf(nil, "%s %v %v %s", p.Protocol, p.TLS, p.Access, p.values)
	if p.AsClient {
		text = append(text, " as client"...)
	}
	sum := sha256.Sum256(text)
	if strings.Contains(p.values, ":") {
		// Tenants choose texts, and could look for two whose short names are equal.
		return "p_" + hex.EncodeToString(sum[:20])
	}
	return "p_" + hex.EncodeToString(sum[:6])
}

// A Variant is what a location does in addition to its profile's settings. Each profile
// has a location for every variant, so that a change of variant costs no reload, and routes
// don't pay for what they don't need.
type Variant struct {
	// HeaderFilter runs the phase header_filter of the route's policies. Their
	// phase log needs no variant: all locations but the one by path run it.
	HeaderFilter bool
	// Check calls an auth service for each request. A variant with a check always has
	// HeaderFilter.
	Check Check
}

// A Check is how an auth service is called.
type Check int

// The checks.
const (
	NoCheck Check = iota
	CheckHTTP
	CheckHTTPS
	// CheckVerified is CheckHTTPS, and the service must have a certificate of
	// Process.Authorities.
	CheckVerified
)

func (c Check) String() string { return [...]string{"none", "http", "https", "verified"}[c] }

// Variants are all variants.
func Variants() []Variant {
	all := []Variant{{}, {HeaderFilter: true}}
	for _, c := range []Check{CheckHTTP, CheckHTTPS, CheckVerified} {
		all = append(all, Variant{HeaderFilter: true, Check: c})
	}
	return all
}

// Passed is the variant without its check, for requests that have passed it.
func (v Variant) Passed() Variant { return Variant{HeaderFilter: v.HeaderFilter} }

// Location is the name, without the "@", of the location of a profile in a variant.
// In the zero variant it is the profile's name, unless the profile has Access: by the
// name alone, Lua knows whether Lua runs in the location.
func (p Profile) Location(v Variant) string {
	name := p.Name()
	if p.Access {
		name += "_access"
	}
	if v.HeaderFilter {
		name += "_filter"
	}
	if v.Check != NoCheck {
		name += "_" + v.Check.String()
	}
	return name
}

// Process is the settings of the NGINX process, from the ConfigMap's keys.
type Process struct {
	// Workers is the number of worker processes, 0 for one a core.
	Workers int
	// ShutdownTimeout is how long an old worker may finish its connections.
	ShutdownTimeout time.Duration
	// ReloadBurst, ReloadInterval and OldGenerations bound the reloads that hosts cause,
	// see the constants of these names. An administrator's change passes by them.
	ReloadBurst    int
	ReloadInterval time.Duration
	OldGenerations int
	// AccessLog writes access logs, to AccessLogTarget where they have no target of their own.
	// RequestLog is that of requests.
	AccessLog       bool
	AccessLogTarget logging.Target
	RequestLog      logging.RequestLog
	// LogsCalls writes the calls of auth checks to the access log.
	LogsCalls bool
	// ErrorLog is where messages about requests go, and Syslog what gets them and the access log
	// instead.
	ErrorLog logging.ErrorLog
	Syslog   logging.Syslog
	// RequestIDs gives an ID to requests that have none.
	RequestIDs bool
	// OriginalURI sends backends the path and query of the client.
	OriginalURI bool
	// Listening is where clients reach it.
	Listening Listening
	// Worker is for each worker process.
	Worker WorkerSettings
	// Hashes are the least sizes of hash tables, 0 where Headgate's own are enough.
	Hashes HashSizes
	// DefaultType is the type of responses without one.
	DefaultType MIMEType
	// HTTP2 offers HTTP/2 on TLS connections. HTTP2Streams is the number of requests at the same
	// time over one, 0 for NGINX's own number, 128.
	HTTP2        bool
	HTTP2Streams int
	// HTTP3 offers HTTP/3. AltSvcPort is the UDP port that the header Alt-Svc names.
	HTTP3      bool
	AltSvcPort int
	// ClientKeepalive is how long an idle client connection stays open; 0
	// closes it after each response.
	ClientKeepalive time.Duration
	// ClientRequests is the number of requests that one client connection
	// may carry.
	ClientRequests int
	// ClientHeaderTimeout and ClientBodyTimeout bound how long a client may
	// take over a request's head, and between two reads of its body.
	ClientHeaderTimeout, ClientBodyTimeout time.Duration
	// ClientHeader is how that head is read.
	ClientHeader ClientHeader
	// BackendConnections is the number of idle connections to backends that
	// a worker keeps; 0 keeps none.
	BackendConnections int
	// BackendRequests is the number of requests that one backend connection
	// may carry.
	BackendRequests int
	// BackendIdle is how long a backend connection may idle, BackendAge how
	// old it may grow.
	BackendIdle, BackendAge time.Duration
	// ServerTokens leaves the Server header in responses.
	ServerTokens bool
	// BackendServer lets the Server header of backends through.
	BackendServer bool
	// HiddenHeaders are headers of backends that no client gets.
	HiddenHeaders names.Headers
	// SeesResponses has Lua see the header of every response, also of those without a route.
	SeesResponses bool
	// ReplacedHeaders are those of names.RequestHeaders that Lua sets.
	ReplacedHeaders names.Headers
	// Compression is how responses are compressed.
	Compression Compression
	// ShowsPages has paths of a host answer instead of errors: see @page in nginx.conf.
	ShowsPages bool
	// AddsHeaders has Lua add lines behind the headers of requests by HTTP.
	AddsHeaders bool
	// Geo has the addresses of clients looked up.
	Geo geo.Settings
	// Upgrades are the protocols that backends may be asked to change to.
	Upgrades names.Upgrades
	// FastCGIParameters are those that ConfigMaps may have besides the usual ones.
	FastCGIParameters names.Parameters
	// Stapling sends OCSP responses with certificates. It is not in nginx.conf: a
	// change needs no reload.
	Stapling bool
	// RedirectCode is the status of redirects from a www redirect alias to its host.
	// It is not in nginx.conf.
	RedirectCode int
	// StatusClients get NGINX's status at the default host, those of loopback addresses if
	// there is no list. It is not in nginx.conf.
	StatusClients PackedNetworks
	// HSTS is the header Strict-Transport-Security of responses over https.
	HSTS HSTS
	TLS  TLS
	// Authorities are certificates, as PEM, of which one must have issued that of a
	// service that Headgate verifies. Without a name they are the system's.
	Authorities Content
	// Snippets are the administrator's own lines of nginx.conf.
	Snippets Snippets
	// Defined are the variables that they define in the http block, which snippets of tenants
	// may read.
	Defined []AdminName
	// Tracing is for spans of requests.
	Tracing Tracing
	// Stream is for TCP and UDP services. It is not in nginx.conf.
	Stream StreamSettings
	// ClientAddress says where the addresses of clients come from.
	ClientAddress ClientAddress
}

// IdleRoom is how many times BackendConnections a worker keeps, so that the backends of
// one namespace don't push out the idle connections of others.
const IdleRoom = 8

// maxIdle bounds them: a worker has 16384 connections in all.
const maxIdle = 4096

// KeptConnections is the number of idle connections that a worker keeps in all.
func (p Process) KeptConnections() int {
	return max(p.BackendConnections, min(IdleRoom*p.BackendConnections, maxIdle))
}

// HSTS is the content of a Strict-Transport-Security header.
type HSTS struct {
	On bool
	// MaxAge is in seconds.
	MaxAge              int
	Subdomains, Preload bool
}

// Value is the header's value.
func (h HSTS) Value() string {
	value := "max-age=" + strconv.Itoa(h.MaxAge)
	if h.Subdomains {
		value += "; includeSubDomains"
	}
	if h.Preload {
		value += "; preload"
	}
	return value
}
