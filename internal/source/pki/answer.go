package pki

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"slices"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/headgate/headgate/internal/keypolicy"
)

const (
	// skew is how far a responder's clock may be ahead.
	skew = 5 * time.Minute
	// withoutEnd is how long an answer is shown that does not say until when.
	withoutEnd = time.Hour
	day        = 24 * time.Hour
)

// An answer is one of a responder that a certificate is good.
type answer struct {
	raw         []byte
	from, until time.Time
}

// due is when to ask for the next one: when half of the time is over, and else
// in half of what is left.
func (a *answer) due(now time.Time) time.Duration {
	half := a.from.Add(a.until.Sub(a.from) / 2)
	pause := half.Sub(now)
	if pause <= 0 {
		pause = a.until.Sub(now) / 2
	}
	return min(pause, maxPause)
}

// A refusal is why an answer can't be shown.
type refusal struct {
	reason string
	// revoked answers are good ones, and put an end to what was said before.
	revoked bool
}

func (r *refusal) Error() string { return r.reason }

// readAnswer reads an answer, and checks all that a client will check.
func readAnswer(body []byte, about *subject, now time.Time) (*answer, error) {
	// The library looks for the signature's key in the answer, and takes any
	// certificate of the issuer's for the responder's: that is checked here.
	unusable := &refusal{reason: "the OCSP responder gives no answer that can be used"}
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
		return nil, &refusal{reason: "the OCSP responder's answer is not valid yet"}
	case !until.After(now):
		return nil, &refusal{reason: "the OCSP responder's answer is too old"}
	case response.Status == ocsp.Revoked:
		return nil, &refusal{reason: "the certificate is revoked", revoked: true}
	case response.Status != ocsp.Good:
		return nil, &refusal{reason: "the OCSP responder does not know the certificate"}
	}
	return &answer{raw: body, from: response.ThisUpdate, until: until}, nil
}

// checkSignersKey checks the key that the library will verify an answer with: that
// of the first certificate in the answer, if there is one. The library reads the
// same fields in the same way, and says no more of what is no answer.
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
	return keypolicy.Check(signer.PublicKey)
}

// checkSigner checks that the issuer signed an answer, or somebody whom it
// allowed to.
func checkSigner(response *ocsp.Response, issuer *x509.Certificate, now time.Time) error {
	wrong := &refusal{reason: "the OCSP responder's answer is not signed by the certificate's issuer"}
	signer := response.Certificate
	if signer == nil {
		if response.CheckSignatureFrom(issuer) != nil {
			return wrong
		}
		return nil
	}
	// The signature was checked with the signer's key by the library.
	if bytes.Equal(signer.Raw, issuer.Raw) {
		return nil
	}
	allowed := slices.Contains(signer.ExtKeyUsage, x509.ExtKeyUsageOCSPSigning)
	if !allowed || signer.CheckSignatureFrom(issuer) != nil || now.Before(signer.NotBefore.Add(-skew)) || now.After(signer.NotAfter) {
		return wrong
	}
	return nil
}
