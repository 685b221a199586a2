package source

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Issuers are what a certificate names for its issuer's certificate, as an
// object among the others. Its name is the URL, and its namespace is empty.
type Issuers struct {
	metav1.ObjectMeta
	// Chain is, in DER, the certificate at the URL, then that of its issuer and
	// so on, as far as they could be had. Who signed what stands before the first
	// one is not known.
	Chain [][]byte
	// Problem says why there is no certificate; empty if there is one. It stays
	// the same while the problem lasts.
	Problem string
}

// A Subject is a certificate on which an OCSP answer is wanted.
type Subject struct {
	// Name names the Subject and the Staple.
	Name string
	// Chain is the certificate with that of its issuer behind it, in PEM.
	Chain []byte
	// Secret is where the certificate stands, as "namespace/name".
	Secret string
}

// A Staple is the OCSP answer on a certificate, as an object among the others.
// Its name is that of the Subject, and its namespace is empty.
type OCSPResponse struct {
	metav1.ObjectMeta
	// Secret is that of the Subject.
	Secret string
	// Response is the answer, in DER, that says that the certificate is good;
	// empty while there is none.
	Response []byte
	// Until is when the answer is no longer to be shown.
	Until time.Time
	// Problem says why there is no answer, or why there is no newer one; empty if
	// all is well. It stays the same while the problem lasts.
	Problem string
}
