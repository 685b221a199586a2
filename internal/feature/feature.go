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

	"github.com/headgate/headgate/internal/directive"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/resource"
)

// A Feature is what one directory gives.
type Feature struct {
	// Name names the feature in policies and in Lua, where it is the module
	// headgate.feature.NAME: lower case and underscores.
	Name string
	// Doc says in a sentence what the feature does.
	Doc string
	// Settings are all annotations and keys that the feature reads.
	Settings []Declared
	// Route reads the annotations of an Ingress and writes what they mean for
	// one of its routes: static settings into its profile, dynamic ones as
	// policies. It is called for each route in the order of the feature list,
	// with one Reader for all routes that an Ingress has on a host. Nil if the feature does nothing on routes.
	Route func(*Reader, *model.Route)
	// Host reads the annotations of an Ingress and returns what they say of its
	// whole host, as plain data, or nil for nothing. The oldest Ingress of a
	// host that says anything decides, and all routes of the host get its value
	// as a policy, whichever Ingress they are from. Nil if the feature says
	// nothing of hosts. A bad value is for Route to tell, unless there is a
	// Group.
	Host func(*Reader) any
	// Twin tells whether the Ingress claims, for each of its hosts, the name
	// with "www." before it, or without it where the host has it: requests for
	// that name are sent to the host. Nil if the feature claims none. A bad
	// value is for Route to tell.
	Twin func(*Reader) bool
	// Aliases reads the annotations of an Ingress and returns the further names
	// that it claims for its hosts, see model.KindOfAlias. Nil if the feature
	// has none. A bad value is for Route to tell.
	Aliases func(*Reader) []string
	// Fallback reads the annotations of an Ingress and returns the Service of
	// its namespace that answers where a route's own backend has no endpoint,
	// empty for none. Nil if the feature has none. A bad value is for Route to
	// tell.
	Fallback func(*Reader) string
	// Calls reads the annotations of an Ingress, or keys alone where the Reader
	// has no annotations, and returns the services that routes ask besides their
	// backends, each with its name. They are asked through the backends that
	// model.Call.Backend names, or with SameHost the host's name. Nil if the
	// feature asks none. A bad value is for Route to tell.
	Calls func(*Reader) []model.Call
	// Alternative reads the annotations of an Ingress and tells whether it stands
	// aside: it makes no routes, and its backends are alternatives to those of
	// the routes that other Ingresses have at its hosts and paths. When says
	// when an alternative is asked, as plain data. The feature gets a policy on
	// such a route, a list of model.Alternative, and chooses in Lua. Nil if the
	// feature knows of no alternatives.
	Alternative func(*Reader) (when any, aside bool)
	// Patterns tells whether a path of an Ingress with these annotations is a
	// regular expression. One such path makes all paths of its host
	// expressions. Nil if the feature makes none.
	Patterns func(r *Reader, path string) bool
	// Backend reads the annotations of the Ingress that decides over a backend,
	// the oldest that uses it, and writes what they mean for it. Of the other
	// Ingresses only those are told that ask for something else. All settings
	// of a feature that has Backend are settings of the backend, and it has no
	// Route. Nil if the feature has no such settings.
	Backend func(*Reader, *model.Balancing)
	// Handshake reads the annotations that decide over the TLS connections of a
	// host, and writes what they mean. Each annotation counts as the oldest
	// Ingress of the host has it that has a good value of it; the others are
	// told if they ask for something else. All annotations of a feature that
	// has Handshake are settings of the host, and it has no Route; what it does
	// to requests Host says. It sets the fields that are its own and leaves the
	// others. Nil if the feature has no such settings.
	Handshake func(*Reader, *model.TLSPolicy)
	// Group has one Ingress decide over all that Host and Handshake say of a
	// host. Such a feature has no Route. Nil if they count as said there.
	Group *Group
	// Global reads keys and returns what holds for every request, as plain
	// data, or nil for nothing. Nil if the feature has no such settings.
	Global func(*Reader) any
	// Process reads keys and writes the settings of the NGINX process. Nil if
	// the feature has none.
	Process func(*Reader, *model.Process)
	// Foretell says what the feature's policy on a route answers to a request
	// before a backend is chosen, as its Lua does in the phase route. It is called
	// only where the route carries a policy of the feature. Nil if it never
	// answers there.
	Foretell func(Question) Foretold
	// ForetellGuard does so for the phases when there is a backend to ask, but for
	// judge.
	ForetellGuard func(Question) Foretold
	// ForetellJudge says what the feature's function judge answers: Status is that
	// of a refusal, and with Status 0 and a Why it is for somebody else to say.
	// Nil if the feature has no such function.
	ForetellJudge func(Question) Foretold
	// MayAnswer says in a sentence what the feature may answer, where none of the
	// functions above does. Its zero value is for features that never answer.
	MayAnswer MayAnswer
	// Causes names the settings of the feature that cause what the core does.
	Causes map[Effect]string
	// Choose says which of a route's alternatives is asked, as the feature's Lua
	// does. The policy is the list of them. Nil if the feature knows of none.
	Choose func(Question) Chosen
	// Directives are the settings of profiles that are the feature's own.
	Directives directive.List
	// Lua holds the feature's Lua modules, *.lua: that of the feature's Name is
	// headgate.feature.NAME, a further one headgate.feature.NAME.MODULE. Nil if
	// the feature needs none.
	Lua fs.FS
	// Resources are what the feature needs of NGINX's configuration beside
	// profiles.
	Resources resource.Resources
}

// A Group makes the annotations of a feature count together on a host: all as
// the one Ingress has them that decides, and none as another has it. It is for
// access control, where the next Ingress's value in the place of a bad one
// would let others in.
type Group struct {
	// Leading is the annotation by which an Ingress asks for the feature. The
	// oldest Ingress of a host that has it decides, whatever the value is. Of the
	// others those are told that ask for something else.
	Leading Declared
	// Bad is the policy on all routes of the host, in the place of what Host
	// says, where a value of the Ingress that decides is bad and denies, or
	// where the administrator does not allow that Ingress. Handshake then says
	// nothing. It is for the feature's Lua to refuse; if Bad is nil, all routes
	// answer 503.
	Bad any
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

// OnInvalid says what a bad value of an annotation does to its routes.
type OnInvalid int

const (
	// UseDefault takes the value that would hold without the annotation.
	UseDefault OnInvalid = iota
	// Deny answers 503 on the routes: for everything that controls access.
	Deny
)

// Risk says how much harm a tenant can do with an annotation. It is compared
// with the key annotations-risk-level.
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
