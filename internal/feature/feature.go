// Package feature is the contract between Headgate and its features.
//
// A feature is one directory below this one: the annotations and ConfigMap
// keys that it reads, what they mean for a route, and the Lua that does it.
// Everything else about it is made from its Feature value. Features are listed
// in package all and do not know of each other.
//
// Like build, a feature is pure: it reads values and writes the model. It
// knows no Kubernetes types, no NGINX and no files.
package feature

import (
	"io/fs"
	"slices"

	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
	"github.com/headgate/headgate/internal/model/prediction"
	"github.com/headgate/headgate/internal/model/resource"
)

// A Feature is the content of one directory: the declarations of its settings, and
// pure functions of their values, one for each scope. All functions may be nil.
//
// The functions don't validate: an invalid value, or one that the administrator does
// not allow, was reported before, and denies whether or not a function reads it.
type Feature struct {
	// Name names the feature in policies and in Lua, where it is the module
	// headgate.feature.NAME: lower case and underscores.
	Name string
	// Doc says in a sentence what the feature does.
	Doc string
	// Settings are all annotations and keys that the feature reads.
	Settings []AnySetting
	// Route writes what the values of an Ingress mean for one of its routes:
	// static settings into its profile, dynamic ones as policies. Features are
	// called in the order of the list.
	Route func(Values, *RouteOut)
	// Host writes what the merged values of a host mean for TLS and all its routes.
	Host func(Values, *HostOut)
	// Backend writes what the merged values of a backend mean for it.
	Backend func(Values, *BackendOut)
	// Names writes which further names the Ingress claims. It gets no data of objects.
	Names func(Values, *NamesOut)
	// Process writes what keys mean for the NGINX process and for every request.
	Process func(Values, *ProcessOut)
	// Refused is called behind Process where NGINX does not take texts of the administrator.
	Refused func(Values, Refusals, *ProcessOut)

	// Implies returns the annotations that the values of an Ingress stand for: those of its
	// own routes (ScopeRoute), or of all routes of its hosts (ScopeHost). Others than
	// annotations of Ingresses it must not read.
	Implies func(Values, Scope) []Implied

	// Calls are the services that the routes of an Ingress call besides their
	// backends, or without an Ingress those that the keys alone have all routes
	// call. They are called through the backends that model.Call.Backend names,
	// or with SameHost the host's name.
	Calls func(Values) []model.Call
	// Canary reports whether the Ingress is a canary: it makes no routes, and its
	// backends are canaries of the routes that other Ingresses have at its hosts and
	// paths. When is plain data that says which requests a canary gets. The feature
	// gets a policy on each such route, a list of model.Canary, and selects one in
	// Lua.
	Canary func(Values, *Report) (when any, is bool)
	// Common are annotations as many Ingresses have them, and Occasional as some do. NGINX has the
	// profiles of the former from its start, of the latter from the first reload by Ingresses.
	Common, Occasional []map[string]string
	// Patterns returns the setting that makes a path of the Ingress a regular
	// expression, nil if the path is not one. One such path makes all paths of its
	// host expressions.
	Patterns func(v Values, path string) AnySetting

	// Predict has the feature's answers to requests that explain simulates.
	Predict prediction.ByPhase
	// Part returns why an annotation of the feature, with a good value, has no part in a request that
	// explain simulates; empty if it has one, or may have.
	Part func(q prediction.Request, annotation, value string) string
	// Replaced reports whether the feature's policy on a route has the fallback backend
	// respond instead of a status of Headgate's own, as its phase error_page does. If that
	// has no endpoint, it is the backend of the key byDefault; empty for the built-in one.
	Replaced func(policy any, status int) (byDefault string, ok bool)
	// Causes are the settings of the feature that cause effects of the core.
	Causes map[Effect]string
	// Choose returns which of a route's canaries gets a request, as the feature's Lua
	// decides. The policy is the list of them. Nil for features without canaries.
	Choose func(prediction.Request) prediction.Choice
	// CountsTogether is set if replicas are to count together what the feature's Lua module
	// exchange has. One feature may have it.
	CountsTogether bool
	// Directives are the settings of profiles that are the feature's own.
	Directives directive.List
	// Lua holds the feature's Lua modules, *.lua: that of the feature's Name is
	// headgate.feature.NAME, a further one headgate.feature.NAME.MODULE.
	Lua fs.FS
	// Resources are what the feature needs in nginx.conf besides profiles.
	Resources resource.Resources
}

// A RouteOut is a route in the making.
type RouteOut struct {
	Report
	Route *model.Route
	Host  Host
	// AppProtocol is that of the port of the Service that a rule sends requests to, empty
	// for none, and for the default backend.
	AppProtocol string
	// Guards are the features before this one in the list that may refuse clients on the route.
	Guards []string
	// Speaks is for the feature that decides how backends are asked: whether one whose
	// port has an application protocol is asked as that says. Nil stands for all.
	Speaks func(appProtocol string) bool
}

// A Host is the host that a route is on.
type Host struct {
	Name string
	// DefaultBackend is the key of the default backend, empty for the built-in one.
	DefaultBackend string
	// ManyNames is set where clients ask for it by more than one name.
	ManyNames bool
	// First returns the values of the oldest Ingress of the host in the namespace of the
	// route's whose value of a setting is used and not empty. It may be nil.
	First func(AnySetting) (Values, bool)
	// Answers reports whether the host has a route for a path that does not call
	// the host itself before it lets a request pass.
	Answers func(path string) bool
}

// A HostOut is what features write for a whole host. Deny denies all of its routes.
type HostOut struct {
	Report
	// TLS is the feature's policy in TLS handshakes for the host, and Policy the one
	// on all routes of the host, as plain data, nil for none.
	TLS, Policy any
	// Server is the feature's policy before a route is looked for, and for requests that
	// it answers itself, nil for none. Hosts with one have no shortcuts.
	Server any
	// Routes are those of the host, with Kind, Path and Slash as their rules have them, even
	// where Patterns says that they become expressions. A feature may write into them what it
	// writes in Route.
	Routes   []*model.Route
	Patterns bool
	// Guards returns the features of the list that may refuse clients on one of the routes.
	Guards func() []string
	// Passthrough is the setting that has TLS connections for the host passed through to
	// the backend of its path "/", nil if none has.
	Passthrough AnySetting
	// Contents are what the policies refer to by name.
	Contents []model.Content
}

// A BackendOut is what features write for a backend. Deny leaves it no endpoints.
type BackendOut struct {
	Report
	Balancing *model.Balancing
}

// NamesOut are the names that an Ingress claims besides its hosts.
type NamesOut struct {
	// Aliases are further names for its hosts, see model.KindOfAlias.
	Aliases []string
	// AliasesBy is the setting that claims aliases, nil for none. WWWBy claims, for
	// each host, the name with "www." before it, or without it where the host has
	// it: requests for that name are redirected to the host.
	AliasesBy, WWWBy AnySetting
}

// A ProcessOut is what keys mean for the process. Each feature sets its own fields.
type ProcessOut struct {
	Report
	Process *model.Process
	// Policy is plain data for the feature's Lua on every request, nil for none.
	Policy any
}

// A Report takes problems that several settings together, or objects, show.
type Report struct {
	Problems []Problem
	Denied   bool
	// DenyingKeys are the keys that deny by DenyByKey.
	DenyingKeys []string
	values      Values
	denial      string
}

// NewReport makes a Report about values. Denial is the effect of what denies.
func NewReport(v Values, denial string) Report { return Report{values: v, denial: denial} }

// Reject reports that a setting can't be followed, as an invalid value is.
func (r *Report) Reject(s AnySetting, code finding.Code, message string) {
	if s.Spec().OnInvalid != UseDefault {
		r.Deny(s, code, message)
		return
	}
	r.add(s, Problem{Code: code, Message: message, Effect: s.Spec().unused(), Rejected: true})
}

// Deny reports the same and denies, even if an invalid value would not.
func (r *Report) Deny(s AnySetting, code finding.Code, message string) {
	r.Denied = true
	r.add(s, Problem{Code: code, Message: message, Effect: r.denial, Rejected: true, Denies: true})
}

// DenyByKey denies because of the key of a setting, about which Process reports: the problem
// is the ConfigMap's, and of no Ingress.
func (r *Report) DenyByKey(s AnySetting) {
	r.Denied, r.DenyingKeys = true, append(r.DenyingKeys, s.Spec().Key)
}

// Ignore reports that a value is not used, and what happens instead: no denial.
func (r *Report) Ignore(s AnySetting, code finding.Code, message, effect string) {
	r.add(s, Problem{Code: code, Message: message, Effect: effect, unused: true})
}

// Warn reports that a setting does not have its full effect, and what happens
// instead.
func (r *Report) Warn(s AnySetting, code finding.Code, message, effect string) {
	r.add(s, Problem{Code: code, Message: message, Effect: effect})
}

func (r *Report) add(s AnySetting, p Problem) {
	d := s.Spec()
	p.Field, p.Ingress = r.values.field(d), r.values.origin
	if e := r.values.entries[d.Annotation]; e != nil {
		p.Ingress = e.origin
	}
	if !slices.Contains(r.Problems, p) {
		r.Problems = append(r.Problems, p)
	}
}

// CountingTogether is the name of the feature that counts together with other replicas, empty
// for none.
func CountingTogether(features []Feature) string {
	for _, f := range features {
		if f.CountsTogether {
			return f.Name
		}
	}
	return ""
}

// Resources are those of all features together.
func Resources(features []Feature) resource.Resources {
	list := make([]resource.Resources, len(features))
	for i, f := range features {
		list[i] = f.Resources
	}
	return resource.Merge(list...)
}

// Directives are those of all features together.
func Directives(features []Feature) directive.List {
	lists := make([]directive.List, len(features))
	for i, f := range features {
		lists[i] = f.Directives
	}
	return directive.Merge(lists...)
}

// Add appends a policy of the named feature to a route.
func Add(route *model.Route, feature string, value any) {
	route.Policies = append(route.Policies, model.Policy{Feature: feature, Value: value})
}

// AddOfProfile appends a policy whose value the profile determines. A route with another one
// then waits for a reload as it is, like one with another profile.
func AddOfProfile(route *model.Route, feature string, value any) {
	route.Policies = append(route.Policies, model.Policy{Feature: feature, Value: value, OfProfile: true})
}

// Attach adds content to a route. It returns the name by which a policy refers to the
// content, and by which the feature's Lua finds it (units.content).
func Attach(route *model.Route, content model.Content) (name string) {
	route.Contents = append(route.Contents, content)
	return content.Name
}

// OnInvalid is the effect of an invalid value of an annotation on its routes.
type OnInvalid int

const (
	// UseDefault uses the value that applies without the annotation.
	UseDefault OnInvalid = iota
	// Deny answers 503 on the routes: for everything that controls access.
	Deny
	// DenyMissing uses the default for an invalid text, and denies if the object that
	// it names does not exist, may not be read, or is rejected.
	DenyMissing
	// UseStrictest is for keys: it uses the value that the parser returns beside its
	// error.
	UseStrictest
)

// Risk is how much harm an annotation can do. The key annotations-risk-level bounds it.
type Risk int

// The risks, least first.
const (
	Low Risk = iota
	Medium
	High
	Critical
)

func (r Risk) String() string {
	return [...]string{"Low", "Medium", "High", "Critical"}[r]
}
