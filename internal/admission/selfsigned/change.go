package selfsigned

import (
	"bytes"
	"crypto/x509"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/headgate/headgate/internal/admission/certgen"
)

// RenewAnnotation of the Secret renews its certificate at once, with any value.
const RenewAnnotation = "headgate.io/renew"

// nextKeys are the keys of the certificate that is to be served next. Its authority is
// among the others already.
var nextKeys = certgen.Keys{Certificate: "next-cert", Key: "next-key"}

// What becomes of the Secret.
const (
	made     = "made, since there was none that can be served"
	prepared = "renewed: the new one is served once API servers trust it"
	promoted = "replaced by the new one"
)

// change changes the Secret as far as that is to be done now, and says what it has done;
// nothing if it is "".
//
// A certificate is renewed in two steps, so that every replica serves at any time what API
// servers trust: first a new one is stored beside it, with its authority in the CA bundle,
// and it replaces the old one when API servers have that bundle. The authority of
// the old one stays in it until the next renewal.
func (k *Keeper) change(s *corev1.Secret, c *configuration) (string, error) {
	now := time.Now()
	current := certgen.DefaultKeys.Pair(s)
	leaf := usable(current, now)
	next := nextKeys.Pair(s)
	if later := usable(next, now); later != nil {
		if k.isTrusted(next, later, c, now) || leaf == nil {
			promote(s, next)
			return promoted, nil
		}
		return "", nil
	}
	names := []string{ServerName(k.Service)}
	if leaf == nil {
		pair, err := certgen.New(names, now, now.Add(k.Timing.Validity))
		if err != nil {
			return "", err
		}
		promote(s, pair)
		return made, nil
	}
	_, asked := s.Annotations[RenewAnnotation]
	switch {
	case leaf.VerifyHostname(names[0]) != nil:
		// Replicas with another Service may serve still: they would ask for their name.
		for _, name := range leaf.DNSNames {
			if name != names[0] {
				names = append(names, name)
			}
		}
	case !asked && leaf.NotAfter.Sub(now) >= k.Timing.RenewBefore:
		return "", nil
	}
	pair, err := certgen.New(names, now, now.Add(k.Timing.Validity))
	if err != nil {
		return "", err
	}
	nextKeys.Put(s, pair.After(current))
	delete(s.Annotations, RenewAnnotation)
	return prepared, nil
}

// ServerName is the name at which API servers call a Service.
func ServerName(service types.NamespacedName) string {
	return service.Name + "." + service.Namespace + ".svc"
}

// usable is the certificate of a pair that can be served, or nil.
func usable(p certgen.Pair, now time.Time) *x509.Certificate {
	served, err := p.Read()
	if err != nil || now.After(served.Leaf.NotAfter) {
		return nil
	}
	return served.Leaf
}

// promote has a pair served.
func promote(s *corev1.Secret, p certgen.Pair) {
	certgen.DefaultKeys.Put(s, p)
	delete(s.Data, nextKeys.Certificate)
	delete(s.Data, nextKeys.Key)
	delete(s.Annotations, RenewAnnotation)
}

// isTrusted reports whether API servers have had the time to learn that they are to trust
// the next certificate.
func (k *Keeper) isTrusted(next certgen.Pair, leaf *x509.Certificate, c *configuration, now time.Time) bool {
	if !c.trusts(leaf) {
		k.waiting = nil
		return false
	}
	if !bytes.Equal(k.waiting, next.Certificate) {
		k.waiting, k.trusted = next.Certificate, now
	}
	return now.Sub(k.trusted) >= k.Timing.Delay
}
