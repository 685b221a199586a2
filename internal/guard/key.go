package guard

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"fmt"
)

// maxRSABits is the longest RSA key that Go's TLS accepts from peers. The cost of
// using a key grows at least with the square of its length.
const maxRSABits = 8192

// CheckKey returns an error if the public key of a tenant's certificate must not be
// used. Call it before signing or verifying with the key. The error names the
// keys that may be used.
func CheckKey(public any) error {
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
	return fmt.Errorf("the key is %s: it must be RSA with up to %d bits, ECDSA on P-256, P-384 and P-521, and Ed25519", is, maxRSABits)
}
