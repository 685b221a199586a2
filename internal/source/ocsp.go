package source

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Issuers are the certificates at a URL that a certificate names for its
// issuer, as an object. Its name is the URL, and its namespace is empty.
type Issuers struct {
	metav1.ObjectMeta
	// Chain is, in DER, the certificate at the URL, then that of its issuer and
	// so on, as far as they are available. It is not checked which certificates
	// the first one signed.
	Chain [][]byte
	// Problem is why there is no certificate; empty if there is one. It stays
	// the same while the problem lasts.
	Problem string
}

// A Subject is a certificate that needs an OCSP response.
type Subject struct {
	// Name is that of the Subject and of the OCSPResponse.
	Name string
	// Chain is the certificate, followed by that of its issuer, in PEM.
	Chain []byte
	// Secret is the Secret of the certificate, as "namespace/name".
	Secret string
}

// An OCSPResponse is that of a certificate, as an object. Its name is that of the
// Subject, and its namespace is empty.
type OCSPResponse struct {
	metav1.ObjectMeta
	// Secret is that of the Subject.
	Secret string
	// Response is the response that the certificate is good, in DER; empty if
	// there is none.
	Response []byte
	// Until is when the response expires.
	Until time.Time
	// Problem is why there is no response, or no newer one; empty if there is no
	// problem. It stays the same while the problem lasts.
	Problem string
}
