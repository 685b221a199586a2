// Package permission describes the permissions that a package needs from the API
// server: for which objects, why, and the effect if one is missing. The log about
// a missing permission and the roles to grant are made from that description.
//
// It sends no requests.
package permission

import (
	"cmp"
	"slices"
	"strings"
)

// A Permission allows verbs on one resource, for one reason. Values can be
// compared.
type Permission struct {
	Resource, Group string
	// Namespace is empty for all, or for resources without a namespace.
	Namespace string
	// Name limits it to the object of that name; empty for all.
	Name string
	// Verbs are separated by spaces.
	Verbs string
	// Need is what it is needed for: "to know …".
	Need string
	// Without is the effect if it is missing: NotReady, or what does not work.
	Without string
}

// NotReady is the effect of a missing permission that is required.
const NotReady = "Headgate does not become ready"

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

// rules groups permissions by their objects, in a fixed order: those that are
// required first.
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
		if a.required() != b.required() {
			if a.required() {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.name, b.name))
	})
	return list
}

// required reports whether Headgate does not work without it.
func (r rule) required() bool {
	return slices.ContainsFunc(r.reasons, func(p Permission) bool { return p.Without == NotReady })
}
