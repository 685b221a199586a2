// Package source holds the contract between a source of Kubernetes objects
// and the store: changes of objects.
//
// It knows neither sources nor the store. Each source is a package below it. It
// calls a function to deliver changes.
//
// A source delivers changes in batches, in order and from one goroutine. The
// first batch has all objects. It is delivered even if it is empty, since it
// also means that the source is complete.
package source

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GroupAnnotation of a namespace has the name of the group of edges that get its units.
const GroupAnnotation = "headgate.io/edge-group"

// A Change is a new version of an object, or its deletion.
type Change struct {
	// Object is typed: *networkingv1.Ingress, *corev1.Service and so on. The
	// receiver must not edit it. For a deletion it is the last version, or an
	// object of that type with only a namespace and a name.
	Object metav1.Object
	// Deleted is set if the object is gone.
	Deleted bool
	// Arrived is when the first Queue got it, or the oldest of the changes of the object that
	// it replaces.
	Arrived time.Time
}
