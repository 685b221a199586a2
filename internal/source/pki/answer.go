package pki

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"slices"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/headgate/headgate/internal/guard"
)

const (
	// skew is how far a responder's clock may be ahead.
	skew = 5 * time.Minute
	// withoutEnd is how long a response without an expiry is served.
	withoutEnd = time.Hour
	day        = 24 * time.Hour
)

// An answer is an OCSP response that a certificate is good.
type answer struct {
	raw         []byte
	from, until time.Time
}

// due is when to request the next one: after half of its time, and later after
// half of the time that is left.
func (a *answer) due(now time.Time) time.Duration {
	if half := a.from.Add(a.until.Sub(a.from) / 2); half.After(now) {
		return min(half.Sub(now), maxPause)
	}
	return min(a.until.Sub(now)/2, maxPause)
}

// A refusal is why a response can't be served.
type refusal struct {
	reason string
	// revoked responses are valid, and end the use of the previous one.
	revoked bool
}

func (r *refusal) Error() string { return r.reason }

// readAnswer parses a response, and checks everything that a client checks.
func readAnswer(body []byte, about *subject, now time.Time) (*answer, error) {
	// The library uses the key of a certificate in the response, and accepts any
	// certificate of the issuer as that of the responder: that is checked here.
	unusable := &refusal{reason: "the OCSP responder does not send a usable response"}
	if checkSignersKey(body) != nil {
		return nil, unusable
	}
	response, err := ocsp.ParseResponseForCert(body, about.leaf, nil)
	if err != nil {
		return nil, unusable
	}
	if err := checkSigner(response, about.issuer, now); err != nil {
		return nil, err
	}
	until := response.NextUpdate
	if until.IsZero() {
		until = now.Add(min(response.ThisUpdate.Add(day).Sub(now), withoutEnd))
	}
	switch {
	case response.ThisUpdate.After(now.Add(skew)):
		return nil, &refusal{reason: "the OCSP response is not valid yet"}
	case !until.After(now):
		return nil, &refusal{reason: "the OCSP response is expired"}
	case response.Status == ocsp.Revoked:
		return nil, &refusal{reason: "the certificate is revoked", revoked: true}
	case response.Status != ocsp.Good:
		return nil, &refusal{reason: "the OCSP responder does not know the certificate"}
	}
	return &answer{raw: body, from: response.ThisUpdate, until: until}, nil
}

// checkSignersKey checks the key with which the library will verify a response:
// that of the first certificate in it, if there is one. The library parses the
// same fields in the same way.
func checkSignersKey(body []byte) error {
	var response struct {
		Status asn1.Enumerated
		Bytes  struct {
			Type     asn1.ObjectIdentifier
			Response []byte
		} `asn1:"explicit,tag:0,optional"`
	}
	var basic struct {
		Data         asn1.RawValue
		Algorithm    pkix.AlgorithmIdentifier
		Signature    asn1.BitString
		Certificates []asn1.RawValue `asn1:"explicit,tag:0,optional"`
	}
	if _, err := asn1.Unmarshal(body, &response); err != nil {
		return err
	}
	if _, err := asn1.Unmarshal(response.Bytes.Response, &basic); err != nil {
		return err
	}
	if len(basic.Certificates) == 0 {
		return nil
	}
	signer, err := x509.ParseCertificate(basic.Certificates[0].FullBytes)
	if err != nil {
		return err
	}
	return guard.CheckKey(signer.PublicKey)
}

// checkSigner checks that the issuer, or a responder that it authorised, signed a
// response.
func checkSigner(response *ocsp.Response, issuer *x509.Certificate, now time.Time) error {
	signer, signed := response.Certificate, false
	switch {
	case signer == nil:
		signed = response.CheckSignatureFrom(issuer) == nil
	case bytes.Equal(signer.Raw, issuer.Raw):
		// The library has checked the signature with the signer's key.
		signed = true
	default:
		signed = slices.Contains(signer.ExtKeyUsage, x509.ExtKeyUsageOCSPSigning) && signer.CheckSignatureFrom(issuer) == nil &&
			!now.Before(signer.NotBefore.Add(-skew)) && !now.After(signer.NotAfter)
	}
	if !signed {
		return &refusal{reason: "the OCSP response is not signed by the certificate's issuer"}
	}
	return nil
}
