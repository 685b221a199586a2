package authority

import (
	"bytes"
	"crypto/x509"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/headgate/headgate/internal/unit/link"
)

// RenewAnnotation of the Secret renews its authority at once, with any value.
const RenewAnnotation = "headgate.io/renew"

// These are keys of the Secret. CertificateKey is also that of the ConfigMap. In the Secret it has the
// authority that signs, and behind it older ones.
const (
	CertificateKey     = "ca.crt"
	keyKey             = "ca.key"
	nextCertificateKey = "next-ca.crt"
	nextKeyKey         = "next-ca.key"
)

// What becomes of the Secret.
const (
	made     = "made, since there was none that can be used"
	prepared = "renewed: the new one signs once edges trust it"
	promoted = "replaced by the new one"
)

// contents are what a Secret has, of that what can be used.
type contents struct {
	// current signs, and next will. They are nil if there is none.
	current, next *link.Authority
	older         []*x509.Certificate
}

func read(s *corev1.Secret, now time.Time) contents {
	k := contents{
		current: usable(s.Data[CertificateKey], s.Data[keyKey], now),
		next:    usable(s.Data[nextCertificateKey], s.Data[nextKeyKey], now),
	}
	// Without a key, the first one is older too.
	list, _ := link.ParseCertificates(s.Data[CertificateKey])
	for _, c := range list {
		if c.IsCA && now.Before(c.NotAfter) && (k.current == nil || !c.Equal(k.current.Certificate)) {
			k.older = append(k.older, c)
		}
	}
	return k
}

// usable is an authority that can sign, or nil.
func usable(certificate, key []byte, now time.Time) *link.Authority {
	a, err := link.ParseAuthority(certificate, key)
	if err != nil || now.After(a.Certificate.NotAfter) {
		return nil
	}
	return a
}

// trusted are the certificates of all authorities.
func (k contents) trusted() []*x509.Certificate {
	var list []*x509.Certificate
	for _, a := range []*link.Authority{k.current, k.next} {
		if a != nil {
			list = append(list, a.Certificate)
		}
	}
	return append(list, k.older...)
}

// bundle is trusted in PEM.
func (k contents) bundle() []byte { return link.EncodeCertificates(k.trusted()...) }

// change changes the Secret as far as that is to be done now, and says what it has done; nothing if it
// is "".
//
// An authority is renewed in two steps, so that edges trust at any time what every control shows, and
// controls what every edge shows: first the next one is stored beside it and published, and it replaces
// the old one when edges have it. The old one is trusted until its end.
func (k *Keeper) change(s *corev1.Secret, shown *configMap) (string, error) {
	now := time.Now()
	has := read(s, now)
	if has.next != nil {
		if has.current == nil || k.isPublished(has.next, shown, now) {
			return promoted, promote(s, has, has.next)
		}
		return "", nil
	}
	_, asked := s.Annotations[RenewAnnotation]
	if has.current != nil && !asked && has.current.Certificate.NotAfter.Sub(now) >= k.Timing.RenewBefore {
		return "", nil
	}
	next, err := link.NewAuthority(now, now.Add(k.Timing.Validity))
	if err != nil {
		return "", err
	}
	if has.current == nil {
		return made, promote(s, has, next)
	}
	key, err := next.Key()
	if err != nil {
		return "", err
	}
	s.Data[nextCertificateKey], s.Data[nextKeyKey] = link.EncodeCertificates(next.Certificate), key
	delete(s.Annotations, RenewAnnotation)
	return prepared, nil
}

// promote has an authority sign.
func promote(s *corev1.Secret, has contents, a *link.Authority) error {
	key, err := a.Key()
	if err != nil {
		return err
	}
	list := []*x509.Certificate{a.Certificate}
	if has.current != nil {
		list = append(list, has.current.Certificate)
	}
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	s.Data[CertificateKey], s.Data[keyKey] = link.EncodeCertificates(append(list, has.older...)...), key
	delete(s.Data, nextCertificateKey)
	delete(s.Data, nextKeyKey)
	delete(s.Annotations, RenewAnnotation)
	return nil
}

// isPublished reports whether edges have had the time to learn that they are to trust the next
// authority.
func (k *Keeper) isPublished(next *link.Authority, shown *configMap, now time.Time) bool {
	if !shown.has(next.Certificate) {
		k.waiting = nil
		return false
	}
	if text := link.EncodeCertificates(next.Certificate); !bytes.Equal(k.waiting, text) {
		k.waiting, k.published = text, now
	}
	return now.Sub(k.published) >= k.Timing.Delay
}
