// Package xds carries resources from a control to edges by incremental xDS, as Envoy defines it,
// over one aggregated stream for each edge.
//
// Each kind of unit has a type URL, and its resources have the names of units and the versions of
// package wire. An edge subscribes to all resources of the types that it knows, and says which
// versions it holds, so that after a new connection it gets what differs. Responses are
// acknowledged when they are received. What has changed at one time, a cut, ends with a resource of
// the type Cut: that is acknowledged when NGINX has everything before it, or rejected with the
// reason. Only then the next cut is made, from what is newest by then.
package xds

import (
	"strings"

	"github.com/headgate/headgate/internal/unit"
)

// Schema is the version of what resources are made of. A control and an edge whose schemas differ
// by more than one do not understand each other.
const Schema = 1

const (
	typePrefix = "type.headgate.dev/unit.v1."
	// cutType is the type of the one resource that ends a cut.
	cutType = typePrefix + "cut"
	cutName = "cut"
	// wildcard subscribes to all resources of a type.
	wildcard = "*"

	// These are fields of the metadata of an edge's node.
	schemaField = "schema"
	typesField  = "types"
)

// MaxMessage is how large a message may be, in bytes. An edge with 100,000 hosts says in 16 MiB which
// versions it holds.
const MaxMessage = 64 << 20

const (
	// maxResponse is how large responses get, in bytes, unless they have a single resource. gRPC encodes them into
	// buffers of 32 KiB, or else of 1 MiB, for each edge.
	maxResponse = 28 << 10
	// maxShared is the same where responses are encoded once for many edges.
	maxShared = 256 << 10
)

// kinds are those that are sent, in their order.
func kinds() []unit.Kind {
	var list []unit.Kind
	for _, of := range unit.Kinds() {
		if of.Kind != unit.Refusal {
			list = append(list, of.Kind)
		}
	}
	return list
}

func typeOf(kind unit.Kind) string { return typePrefix + string(kind) }

// kindOf is the kind of a type, false if it is none of a unit.
func kindOf(typeURL string) (unit.Kind, bool) {
	name, ok := strings.CutPrefix(typeURL, typePrefix)
	kind := unit.Kind(name)
	return kind, ok && kind.Traits().Kind == kind && kind != unit.Refusal
}

// types are those that an edge subscribes to.
func types() []string {
	var list []string
	for _, kind := range kinds() {
		list = append(list, typeOf(kind))
	}
	return append(list, cutType)
}
