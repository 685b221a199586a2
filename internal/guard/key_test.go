package guard

import (
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"math/big"
	"strings"
	"testing"
)

func TestCheckKey(t *testing.T) {
	bits := func(n uint) *rsa.PublicKey { return &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), n-1), E: 65537} }
	for name, c := range map[string]struct {
		key     any
		message string
	}{
		"RSA":          {bits(2048), ""},
		"RSA's last":   {bits(8192), ""},
		"RSA too long": {bits(8193), "the key is RSA with 8193 bits: it must be RSA with up to 8192 bits"},
		"P-224":        {&ecdsa.PublicKey{Curve: elliptic.P224()}, "the key is ECDSA on P-224: it must be"},
		"P-256":        {&ecdsa.PublicKey{Curve: elliptic.P256()}, ""},
		"P-384":        {&ecdsa.PublicKey{Curve: elliptic.P384()}, ""},
		"P-521":        {&ecdsa.PublicKey{Curve: elliptic.P521()}, ""},
		"Ed25519":      {ed25519.PublicKey{}, ""},
		"X25519":       {&ecdh.PublicKey{}, "the key is of another kind: it must be"},
		"other":        {"of another kind", "the key is of another kind: it must be"},
		"none":         {nil, "the key is of another kind: it must be"},
	} {
		if err := CheckKey(c.key); (err == nil) != (c.message == "") || err != nil && !strings.HasPrefix(err.Error(), c.message) {
			t.Errorf("%s: %v, want %q", name, err, c.message)
		}
	}
}
