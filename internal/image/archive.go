package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// A Named is an image, or an index of images for several architectures, with its name.
type Named struct {
	Name  string // "headgate:v1.2.3"
	Image v1.Image
	Index v1.ImageIndex
}

// Digest is that of the image or index.
func (n Named) Digest() (v1.Hash, error) {
	if n.Index != nil {
		return n.Index.Digest()
	}
	return n.Image.Digest()
}

// WriteArchive writes an OCI image layout as a tar archive, which containerd, Docker, Podman
// and skopeo read. The same images give the same bytes.
func WriteArchive(to io.Writer, named ...Named) error {
	a := archive{blobs: map[string][]byte{}}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, n := range named {
		descriptor, err := a.add(n)
		if err != nil {
			return fmt.Errorf("add %s: %w", n.Name, err)
		}
		descriptor.Annotations = map[string]string{
			"io.containerd.image.name":          n.Name,
			"org.opencontainers.image.ref.name": n.Name,
		}
		index.Manifests = append(index.Manifests, descriptor)
	}
	list, err := json.Marshal(index)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(to)
	write := func(name string, content []byte) error {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0)}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	if err := write("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	if err := write("index.json", list); err != nil {
		return err
	}
	for _, digest := range slices.Sorted(maps.Keys(a.blobs)) {
		if err := write("blobs/sha256/"+digest, a.blobs[digest]); err != nil {
			return err
		}
	}
	return archive.Close()
}

// archive collects blobs by the hexadecimal digits of their digests.
type archive struct {
	blobs map[string][]byte
}

func (a archive) add(n Named) (v1.Descriptor, error) {
	if n.Index == nil {
		return a.addImage(n.Image)
	}
	manifest, err := n.Index.IndexManifest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	for _, m := range manifest.Manifests {
		image, err := n.Index.Image(m.Digest)
		if err != nil {
			return v1.Descriptor{}, err
		}
		if _, err := a.addImage(image); err != nil {
			return v1.Descriptor{}, err
		}
	}
	return a.addManifest(n.Index)
}

func (a archive) addImage(image v1.Image) (v1.Descriptor, error) {
	layers, err := image.Layers()
	if err != nil {
		return v1.Descriptor{}, err
	}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return v1.Descriptor{}, err
		}
		packed, err := layer.Compressed()
		if err != nil {
			return v1.Descriptor{}, err
		}
		content, err := io.ReadAll(packed)
		packed.Close()
		if err != nil {
			return v1.Descriptor{}, err
		}
		a.blobs[digest.Hex] = content
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return v1.Descriptor{}, err
	}
	digest, _, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return v1.Descriptor{}, err
	}
	a.blobs[digest.Hex] = config
	return a.addManifest(image)
}

func (a archive) addManifest(of interface {
	RawManifest() ([]byte, error)
	MediaType() (types.MediaType, error)
}) (v1.Descriptor, error) {
	raw, err := of.RawManifest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	kind, err := of.MediaType()
	if err != nil {
		return v1.Descriptor{}, err
	}
	digest, size, err := v1.SHA256(bytes.NewReader(raw))
	a.blobs[digest.Hex] = raw
	return v1.Descriptor{MediaType: kind, Digest: digest, Size: size}, err
}
