package image

import (
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// What cosign calls the layer with what was signed, and the annotation with the signature.
const (
	signedType          = types.MediaType("application/vnd.dev.cosign.simplesigning.v1+json")
	signatureAnnotation = "dev.cosignproject.cosign/signature"
)

// statement is what is signed about an image, in the form of container signatures that
// cosign uses.
type statement struct {
	Critical critical          `json:"critical"`
	Optional map[string]string `json:"optional"`
}

type critical struct {
	Identity map[string]string `json:"identity"`
	Image    map[string]string `json:"image"`
	Type     string            `json:"type"`
}

// Sign makes the image with the signature of another one, and the tag under which cosign
// looks for it. repository is the name of the signed image without a tag.
func Sign(key crypto.Signer, repository string, digest v1.Hash) (signature v1.Image, tag string, err error) {
	payload, err := json.Marshal(statement{Critical: critical{
		Identity: map[string]string{"docker-reference": repository},
		Image:    map[string]string{"docker-manifest-digest": digest.String()},
		Type:     "cosign container image signature",
	}})
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(payload)
	signed, err := key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		return nil, "", fmt.Errorf("sign %s: %w", digest, err)
	}
	signature, err = mutate.Append(mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1), mutate.Addendum{
		Layer:       static.NewLayer(payload, signedType),
		Annotations: map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(signed)},
	})
	return signature, digest.Algorithm + "-" + digest.Hex + ".sig", err
}
