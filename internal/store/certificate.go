package store

import (
	"bytes"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/build/certificate"
	"github.com/headgate/headgate/internal/source"
	"github.com/headgate/headgate/internal/unit"
)

// indexIssuers records the URL that the certificate in a Secret names for the
// certificate of its issuer.
func (s *Store) indexIssuers(name types.NamespacedName, object *corev1.Secret, deleted bool) {
	if !s.settings.CompleteChains {
		return
	}
	if url, ok := s.issuerURLs[name]; ok {
		s.byIssuerURL.remove(url, name)
		delete(s.issuerURLs, name)
		s.wantedIssuers.markDirty(url)
	}
	if deleted {
		return
	}
	if url := certificate.IssuerURL(object); url != "" {
		s.byIssuerURL.add(url, name)
		s.issuerURLs[name] = url
		s.wantedIssuers.markDirty(url)
	}
}

// markSecretDirty marks a Secret, and the issuer that its certificate names.
func (s *Store) markSecretDirty(name types.NamespacedName) {
	s.wantedSecrets.markDirty(name)
	if url, ok := s.issuerURLs[name]; ok {
		s.wantedIssuers.markDirty(url)
	}
}

// DrainIssuers does the same as DrainSecrets for the URLs of issuers'
// certificates: those that a certificate in use names.
func (s *Store) DrainIssuers() References[string] {
	return s.wantedIssuers.drain(func(url string) bool {
		for _, secret := range s.byIssuerURL[url] {
			if s.secretInUse(secret) {
				return true
			}
		}
		return false
	})
}

func (s *Store) applyIssuers(object *source.Issuers, deleted bool) []unit.Key {
	if was := put(s.issuers, object.Name, object, deleted); unchanged(was, object, deleted, sameIssuers) {
		return nil
	}
	var touched []unit.Key
	for _, secret := range s.byIssuerURL[object.Name] {
		touched = s.certificateUsers(touched, secret)
	}
	return touched
}

func sameIssuers(a, b *source.Issuers) bool {
	return a.Problem == b.Problem && reflect.DeepEqual(a.Chain, b.Chain)
}

func (s *Store) applyOCSPResponse(object *source.OCSPResponse, deleted bool) []unit.Key {
	if was := put(s.ocspResponses, object.Name, object, deleted); unchanged(was, object, deleted, sameOCSPResponse) {
		return nil
	}
	return []unit.Key{unit.OCSPResponse.Key(object.Name)}
}

func sameOCSPResponse(a, b *source.OCSPResponse) bool {
	return a.Problem == b.Problem && a.Secret == b.Secret && a.Until.Equal(b.Until) && bytes.Equal(a.Response, b.Response)
}

// Issuers are the certificates at the URL, nil until they were delivered.
func (s *Store) Issuers(url string) *source.Issuers { return s.issuers[url] }

// OCSPResponse is that of the certificate, nil if there is none.
func (s *Store) OCSPResponse(certificate string) *source.OCSPResponse {
	return s.ocspResponses[certificate]
}
