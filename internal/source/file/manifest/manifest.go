// Package manifest decodes Kubernetes manifests: the bytes of a file become
// objects and problems, each with its line.
//
// It decodes the kinds that Headgate reads: Ingress, IngressClass, Service,
// EndpointSlice, Endpoints, Secret, ConfigMap and Namespace. It skips all
// others. It must not read files, and does not interpret the objects.
package manifest

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Key names an object.
type Key struct{ Kind, Namespace, Name string }

// String is the key in the form "Ingress default/shop".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// AlreadyDefined is the reason of a Flaw: the object is also defined in
// another place, which takes precedence.
func (k Key) AlreadyDefined(place string) string {
	return fmt.Sprintf("%v is already defined in %s", k, place)
}

// An Object is one object of a file.
type Object struct {
	Key
	// Line is the line on which the object begins.
	Line   int
	Object metav1.Object
	// Problem is that of an object that was converted, or read though a cluster would reject
	// it; nil for all others.
	Problem *Problem
}

// Content is the decoded content of a file.
type Content struct {
	Objects []Object
	// Flaws are the documents that can't be decoded.
	Flaws []Flaw
	// Duplicates are the objects that an earlier document of the file defines.
	Duplicates []Flaw
}

// A Problem is a part of a manifest, a file or a folder that can't be used, or
// an object that is used though it is of an old version or has bare values.
type Problem struct {
	// Line counts from 1; 0 means the file or folder as a whole.
	Line int
	// Reason says what is wrong. For an object of an old version it contains
	// the new form as YAML.
	Reason string
	// Effect says what Headgate does instead.
	Effect string
	// Object is the object of an old version, in the form
	// "ingress/namespace/name"; empty for all other problems.
	Object string
	// Field is the field of Object that is wrong.
	Field string
}

// A Flaw is a problem whose file or folder, and effect, the caller knows.
type Flaw struct {
	Line   int
	Reason string
}

// Problem adds the effect to a flaw.
func (f Flaw) Problem(effect string) Problem {
	return Problem{Line: f.Line, Reason: f.Reason, Effect: effect}
}

// Parallel calls do with 0 to n-1 on all cores, in any order, and returns
// when all calls have returned.
func Parallel(n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}
