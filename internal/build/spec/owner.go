package spec

import networkingv1 "k8s.io/api/networking/v1"

// An Owner is whose a name is.
type Owner struct {
	// Ingress is the oldest with the name or, if Wildcard is set, with that: a
	// wildcard with a certificate, which the name is below. It is nil for a name that
	// no Ingress has.
	Ingress  *networkingv1.Ingress
	Wildcard string
}

// A Claim is how an Ingress asks for a name.
type Claim int

// The claims.
const (
	ByRule Claim = iota
	ByCanary
	ByAlias
	ByRedirectAlias
)

// A Stranger is an Ingress that asks for a name of another namespace, and does not get
// it.
type Stranger struct {
	Ingress *networkingv1.Ingress
	Claim   Claim
}
