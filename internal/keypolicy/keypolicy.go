// Package keypolicy says which public keys of certificates are taken from
// tenants.
package keypolicy

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"fmt"
)

// maxRSABits is the longest RSA key that Go's own TLS takes from its peers.
// What using a key costs grows with the square of its length and more.
const maxRSABits = 8192

// Check says what is wrong with the public key of a certificate that a tenant
// names: call it before signing or verifying with the key. The error says what
// is allowed.
func Check(public any) error {
	is := "of another kind"
	switch key := public.(type) {
	case ed25519.PublicKey:
		return nil
	case *rsa.PublicKey:
		bits := key.N.BitLen()
		if bits <= maxRSABits {
			return nil
		}
		is = fmt.Sprintf("RSA with %d bits", bits)
	case *ecdsa.PublicKey:
		switch key.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
			return nil
		}
		is = "ECDSA on " + key.Curve.Params().Name
	}
	return fmt.Errorf("the key is %s: allowed are RSA with up to %d bits, ECDSA on P-256, P-384 and P-521, and Ed25519", is, maxRSABits)
}
