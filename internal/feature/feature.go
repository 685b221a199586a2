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
	"slices"

	"github.com/headgate/headgate/internal/model"
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
	// Aliases reads the annotations of an Ingress and returns the further names
	// that it claims for its hosts, see model.KindOfAlias. Nil if the feature
	// has none. A bad value is for Route to tell.
	Aliases func(*Reader) []string
	// Fallback reads the annotations of an Ingress and returns the Service of
	// its namespace that answers where a route's own backend has no endpoint,
	// empty for none. Nil if the feature has none. A bad value is for Route to
	// tell.
	Fallback func(*Reader) string
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
	// Global reads keys and returns what holds for every request, as plain
	// data, or nil for nothing. Nil if the feature has no such settings.
	Global func(*Reader) any
	// Process reads keys and writes the settings of the NGINX process. Nil if
	// the feature has none.
	Process func(*Reader, *model.Process)
	// Lua is the source of the feature's Lua module, empty if it needs none.
	Lua string
	// Answers says that the Lua module has functions for the answer phase.
	// That phase costs each request of NGINX something, and is left out where
	// no feature has it.
	Answers bool
}

// AnyAnswers tells whether one of the features takes part in the answer phase.
func AnyAnswers(features []Feature) bool {
	return slices.ContainsFunc(features, func(f Feature) bool { return f.Answers })
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
