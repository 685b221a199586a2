// Package finding defines the form in which problems with objects are reported:
// in the log, in metrics, as Events and by the controller's API.
//
// It has no Kubernetes types: an object is a name.
package finding

import (
	"cmp"
	"fmt"
	"slices"
)

// A Code is the kind of a problem. Codes are stable: dashboards and tools refer
// to them.
type Code string

// The codes.
const (
	// InvalidValue is an annotation or key with an invalid value.
	InvalidValue Code = "InvalidValue"
	// UnknownKey is a ConfigMap key without effect.
	UnknownKey Code = "UnknownKey"
	// UnknownAnnotation is an annotation with Headgate's prefix that neither
	// Headgate nor ingress-nginx has.
	UnknownAnnotation Code = "UnknownAnnotation"
	// OldPrefix is an annotation of ingress-nginx with a prefix that ingress-nginx
	// does not read any more either.
	OldPrefix Code = "OldPrefix"
	// MissingField is a missing field without which API servers reject an object.
	MissingField Code = "MissingField"
	// HostOutsideTLS is a host of an Ingress whose TLS section lists only others.
	HostOutsideTLS Code = "HostOutsideTLS"
	// MissingObject is a reference to an object that does not exist.
	MissingObject Code = "MissingObject"
	// MissingCapability is a setting that this NGINX does not support.
	MissingCapability Code = "MissingCapability"
	// BadCertificate is a TLS Secret that can't be served as requested.
	BadCertificate Code = "BadCertificate"
	// IncompleteChain is a TLS Secret without an issuer's certificate, where that
	// certificate is not available elsewhere.
	IncompleteChain Code = "IncompleteChain"
	// NoOCSPResponse is a certificate without the OCSP response that it should have.
	NoOCSPResponse Code = "NoOCSPResponse"
	// Expires is a certificate that has expired or is about to.
	Expires Code = "Expires"
	// Conflict is a rule that lost to an older Ingress.
	Conflict Code = "Conflict"
	// HostOwned is a name that belongs to one namespace, and that an Ingress of
	// another one asks for in vain.
	HostOwned Code = "HostOwned"
	// HostShared is a host or certificate of one namespace that an Ingress of
	// another one has a part in.
	HostShared Code = "HostShared"
	// TooMany is more than the limit of a host or of the instance.
	TooMany Code = "TooMany"
	// Waits is a setting that waits for a reload of NGINX, which is held back, or for a test of
	// its directives.
	Waits Code = "Waits"
	// GivenUp is a regular expression that NGINX gave up on, since it failed for many
	// requests.
	GivenUp Code = "GivenUp"
	// NotAllowed is something that the administrator does not allow to tenants.
	NotAllowed Code = "NotAllowed"
	// Excluded is an Ingress that is excluded as a whole, because of an
	// administrator's setting.
	Excluded Code = "Excluded"
	// NotSupported is a field that is not served.
	NotSupported Code = "NotSupported"
	// NoEffect is a valid setting that Headgate has nothing to do with: it changes nothing, and
	// nothing is missing.
	NoEffect Code = "NoEffect"
	// Unexpected is a setting that is followed as it is written, and does something else than
	// its author may expect.
	Unexpected Code = "Unexpected"
	// Bypassed is a setting that does not apply to connections that are passed through.
	Bypassed Code = "Bypassed"
	// UnavailablePort is a TCP or UDP port that can't be opened: it is reserved, in use or
	// privileged.
	UnavailablePort Code = "UnavailablePort"
	// Unresolved is a DNS name without known addresses.
	Unresolved Code = "Unresolved"
	// Unhealthy is a Service with endpoints whose health check fails.
	Unhealthy Code = "Unhealthy"
	// OldVersion is an object of an API version that clusters don't serve any
	// more.
	OldVersion Code = "OldVersion"
	// BadManifest is a file or folder of manifests with an unusable part. Its object
	// is "file/" and the path in the folder of manifests; its field is "line N" or
	// empty.
	BadManifest Code = "BadManifest"
)

// A Finding is one problem with one field of one object, and its effect. A build
// never stops at a finding and never logs one.
type Finding struct {
	// Object is the object in the form "ingress/namespace/name", without the
	// namespace if it has none.
	Object string `json:"object"`
	// Field is the annotation, key or field path.
	Field string `json:"field"`
	Code  Code   `json:"code"`
	// Message is what is wrong, and what the value must be.
	Message string `json:"message"`
	// Effect is what is served instead.
	Effect string `json:"effect"`
	// Rejected is set if a value is not used, and Denies if requests are answered 503
	// because of it.
	Rejected bool `json:"-"`
	Denies   bool `json:"-"`
}

// String returns the finding as one line.
func (f Finding) String() string {
	return f.Object + " " + f.Field + " " + string(f.Code) + ": " + f.Message + "; " + f.Effect
}

// Compare is the order of findings.
func Compare(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field),
		cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message), cmp.Compare(a.Effect, b.Effect))
}

// Sort sorts findings and removes duplicates.
func Sort(fs []Finding) []Finding {
	slices.SortFunc(fs, Compare)
	return slices.Compact(fs)
}

// maxAlike is the maximum number of findings of one code that a build has of an
// object.
const maxAlike = 50

// Limit sorts findings as Sort does. If an object has more than maxAlike findings
// of one code, a single finding with the number of the others replaces the rest.
// Without a limit, one object with many mistakes in its annotations and rules
// would fill the log.
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
		return seen[kind] > maxAlike
	})
	for kind, n := range seen {
		if n > maxAlike {
			kept = append(kept, Finding{
				Object: kind.object, Code: kind.code,
				Message: fmt.Sprintf("… and %d more", n-maxAlike), Effect: "further findings of this kind are not listed",
			})
		}
	}
	return Sort(kept)
}
