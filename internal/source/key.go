package source

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"fmt"
)

// mostRSABits is the longest RSA key that Go's own TLS takes from its peers.
// What a key costs who uses it grows with the square of its length and more.
const mostRSABits = 8192

// CheckKey tells what is wrong with the public key of a certificate that a
// tenant names: it is to be called before anybody signs or verifies with the
// key. The error says what is allowed.
func CheckKey(public any) error {
	is := "of another kind"
	switch key := public.(type) {
	case ed25519.PublicKey:
		return nil
	case *rsa.PublicKey:
		bits := key.N.BitLen()
		if bits <= mostRSABits {
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
	return fmt.Errorf("the key is %s: allowed are RSA with up to %d bits, ECDSA on P-256, P-384 and P-521, and Ed25519", is, mostRSABits)
}
