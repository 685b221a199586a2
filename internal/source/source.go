// Package source holds the contract between a source of Kubernetes objects
// and the store: what changed.
//
// It knows no source and no store. Each source is a package below it and
// takes the function that it delivers to.
//
// A source delivers changes in batches, in order and from one goroutine. The
// first batch holds everything there is; it is delivered even when it is
// empty, so that it also says that the source is complete.
package source

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// A Change is one object put or gone.
type Change struct {
	// Object is typed: *networkingv1.Ingress, *corev1.Service and so on. Who
	// receives it must not edit it. For a deletion it is the last state, or
	// an object of that type with only namespace and name filled in.
	Object metav1.Object
	// Deleted says that the object is gone.
	Deleted bool
}
