// Package finding holds the one form in which problems with objects are told:
// in the log, in metrics and by the data plane's read side.
//
// It knows no Kubernetes types: an object is a name.
package finding

import (
	"cmp"
	"fmt"
	"slices"
)

// A Code says what kind of problem it is. Codes are stable: dashboards and
// tools name them.
type Code string

// The codes.
const (
	// InvalidValue is an annotation or key whose value can't be used.
	InvalidValue Code = "InvalidValue"
	// UnknownKey is a ConfigMap key that does nothing.
	UnknownKey Code = "UnknownKey"
	// UnknownAnnotation is an annotation of Headgate's prefix that neither Headgate
	// nor ingress-nginx has.
	UnknownAnnotation Code = "UnknownAnnotation"
	// OldPrefix is an annotation of ingress-nginx with a prefix that it no longer
	// reads either.
	OldPrefix Code = "OldPrefix"
	// NotImplemented is an annotation or key of ingress-nginx whose value may be
	// right and that Headgate does not implement.
	NotImplemented Code = "NotImplemented"
	// MissingField is a field of an object without which no API server takes it.
	MissingField Code = "MissingField"
	// HostOutsideTLS is a host of an Ingress whose TLS section is for others.
	HostOutsideTLS Code = "HostOutsideTLS"
	// MissingObject is a reference to an object that is not there.
	MissingObject Code = "MissingObject"
	// MissingCapability is something that this machine's NGINX can't do.
	MissingCapability Code = "MissingCapability"
	// BadCertificate is a TLS Secret that can't be served as asked.
	BadCertificate Code = "BadCertificate"
	// IncompleteChain is a TLS Secret without an issuer's certificate that can't
	// be had elsewhere.
	IncompleteChain Code = "IncompleteChain"
	// NoOCSPResponse is a certificate without the OCSP response that it should have.
	NoOCSPResponse Code = "NoOCSPResponse"
	// Expires is a certificate that has expired or soon will.
	Expires Code = "Expires"
	// Conflict is a rule that lost to an older Ingress.
	Conflict Code = "Conflict"
	// TooMany is what is over a limit of its host or of the whole gate.
	TooMany Code = "TooMany"
	// NotAllowed is what an administrator does not let tenants do.
	NotAllowed Code = "NotAllowed"
	// Refused is an Ingress that is left out as a whole, by a setting of who
	// runs Headgate.
	Refused Code = "Refused"
	// NotSupported is a field that is not served.
	NotSupported Code = "NotSupported"
	// Unresolved is a DNS name whose addresses can't be had.
	Unresolved Code = "Unresolved"
	// OldVersion is an object of an API version that is served by no cluster
	// of today.
	OldVersion Code = "OldVersion"
	// BadManifest is a file or folder of manifests with something in it that
	// can't be used. Its object is "file/" and the path in the folder of
	// manifests, its field "line N" or nothing.
	BadManifest Code = "BadManifest"
)

// A Finding is one problem with one field of one object, and what was done
// about it. Building never stops at a finding and never logs one.
type Finding struct {
	// Object is the object in the form "ingress/namespace/name", without a
	// namespace where it has none.
	Object string `json:"object"`
	// Field is the annotation, key or field path.
	Field string `json:"field"`
	Code  Code   `json:"code"`
	// Message says what is wrong and what is allowed.
	Message string `json:"message"`
	// Effect says what is served instead.
	Effect string `json:"effect"`
}

// String is the finding as one line.
func (f Finding) String() string {
	return f.Object + " " + f.Field + " " + string(f.Code) + ": " + f.Message + "; " + f.Effect
}

// Sort orders findings and drops those that stand twice.
func Sort(fs []Finding) []Finding {
	slices.SortFunc(fs, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field),
			cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Effect, b.Effect))
	})
	return slices.Compact(fs)
}

// mostAlike is how many findings of one code an object has of one build.
const mostAlike = 50

// Limit sorts findings as Sort does, and of those that an object has of one
// code keeps the first: the others become a single finding with their number.
// Without a bound one object, with all that can be wrong in its annotations and
// rules, fills the log.
func Limit(fs []Finding) []Finding {
	type alike struct {
		object string
		code   Code
	}
	fs = Sort(fs)
	seen := map[alike]int{}
	kept := slices.DeleteFunc(fs, func(f Finding) bool {
		kind := alike{f.Object, f.Code}
		seen[kind]++
		return seen[kind] > mostAlike
	})
	for kind, n := range seen {
		if n > mostAlike {
			kept = append(kept, Finding{
				Object: kind.object, Code: kind.code,
				Message: fmt.Sprintf("… and %d more", n-mostAlike), Effect: "they are not told one by one",
			})
		}
	}
	return Sort(kept)
}
