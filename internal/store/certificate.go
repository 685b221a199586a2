package store

import (
	"slices"

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
		return slices.ContainsFunc(s.byIssuerURL[url], s.secretInUse)
	})
}

func (s *Store) applyIssuers(object *source.Issuers, deleted bool) []unit.Key {
	if _, changed := put(s.issuers, object.Name, object, deleted); !changed {
		return nil
	}
	var touched []unit.Key
	for _, secret := range s.byIssuerURL[object.Name] {
		touched = s.certificateUsers(touched, secret)
	}
	return touched
}

func (s *Store) applyOCSPResponse(object *source.OCSPResponse, deleted bool) []unit.Key {
	if _, changed := put(s.ocspResponses, object.Name, object, deleted); !changed {
		return nil
	}
	return []unit.Key{unit.OCSPResponse.Key(object.Name)}
}

// Issuers are the certificates at the URL, nil until they were delivered.
func (s *Store) Issuers(url string) *source.Issuers { return s.issuers[url] }

// OCSPResponse is that of the certificate, nil if there is none.
func (s *Store) OCSPResponse(certificate string) *source.OCSPResponse {
	return s.ocspResponses[certificate]
}
