// Package permission holds the form in which a package says what it asks of the
// API server: what, where, why, and what happens where it may not. From the
// same words come the log when a permission is missing, and the roles to grant.
//
// It knows no client and asks nothing.
package permission

import (
	"cmp"
	"slices"
	"strings"
)

// A Permission is what is asked of the API server of one resource, for one
// reason. Values can be compared.
type Permission struct {
	Resource, Group string
	// Namespace is empty for all, or for what has none.
	Namespace string
	// Name limits it to the object of that name; empty for all.
	Name string
	// Verbs are separated by spaces.
	Verbs string
	// Need says what it is needed for: "to know …".
	Need string
	// Without says what happens without it: NotReady, or what is less then.
	Without string
}

// NotReady is the effect of a missing permission that is required.
const NotReady = "Headgate does not become ready"

// Required tells whether nothing works without it.
func (p Permission) Required() bool { return p.Without == NotReady }

// String is the resource with its group.
func (p Permission) String() string { return strings.TrimSuffix(p.Resource+"."+p.Group, ".") }

// Where is the namespace in words.
func (p Permission) Where() string { return cmp.Or(p.Namespace, "all") }

// A rule is the permissions of one resource in one place, together.
type rule struct {
	group, resource, name string
	verbs                 []string
	reasons               []Permission
}

// rules brings together what is asked of the same objects, in a fixed order:
// what is required first.
func rules(permissions []Permission) []rule {
	var list []rule
	for _, p := range permissions {
		i := slices.IndexFunc(list, func(r rule) bool {
			return r.group == p.Group && r.resource == p.Resource && r.name == p.Name
		})
		if i < 0 {
			i = len(list)
			list = append(list, rule{group: p.Group, resource: p.Resource, name: p.Name})
		}
		r := &list[i]
		r.verbs = append(r.verbs, strings.Fields(p.Verbs)...)
		r.reasons = append(r.reasons, p)
	}
	for i := range list {
		slices.Sort(list[i].verbs)
		list[i].verbs = slices.Compact(list[i].verbs)
	}
	slices.SortStableFunc(list, func(a, b rule) int {
		return cmp.Or(
			-compareBool(a.required(), b.required()), cmp.Compare(a.group, b.group),
			cmp.Compare(a.resource, b.resource), cmp.Compare(a.name, b.name))
	})
	return list
}

func (r rule) required() bool { return slices.ContainsFunc(r.reasons, Permission.Required) }

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
