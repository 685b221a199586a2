package image

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// verify checks that a signature is of an image, by a key.
func verify(key *ecdsa.PublicKey, signature v1.Image, digest v1.Hash) error {
	manifest, err := signature.Manifest()
	if err != nil {
		return err
	}
	layers, err := signature.Layers()
	if err != nil {
		return err
	}
	if len(layers) != 1 || len(manifest.Layers) != 1 {
		return fmt.Errorf("a signature has one layer, not %d", len(layers))
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		return err
	}
	defer content.Close()
	payload, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	var said statement
	if err := json.Unmarshal(payload, &said); err != nil {
		return fmt.Errorf("decode what was signed: %w", err)
	}
	sum := sha256.Sum256(payload)
	signed, err := base64.StdEncoding.DecodeString(manifest.Layers[0].Annotations[signatureAnnotation])
	if err != nil {
		return fmt.Errorf("decode the signature: %w", err)
	}
	if !ecdsa.VerifyASN1(key, sum[:], signed) {
		return fmt.Errorf("the signature is not by this key")
	}
	if got := said.Critical.Image["docker-manifest-digest"]; got != digest.String() {
		return fmt.Errorf("the signature is of %s, not of %s", got, digest)
	}
	return nil
}

// TestSignature: a signature is of one image and by one key.
func TestSignature(t *testing.T) {
	t.Parallel()
	key, other := newKey(t), newKey(t)
	digest := v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("1", 64)}
	signature, tag, err := Sign(key, "docker.io/headgate/headgate", digest)
	if err != nil {
		t.Fatal(err)
	}
	if tag != "sha256-"+digest.Hex+".sig" {
		t.Errorf("the tag is %s", tag)
	}
	if err := verify(&key.PublicKey, signature, digest); err != nil {
		t.Error(err)
	}
	if err := verify(&other.PublicKey, signature, digest); err == nil {
		t.Error("another key verifies it")
	}
	if err := verify(&key.PublicKey, signature, v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("0", 64)}); err == nil {
		t.Error("it verifies another image")
	}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
