// Package image makes the container images of Headgate: without a daemon, the same bytes
// from the same input, for any architecture.
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"pault.ag/go/debian/deb"

	"github.com/headgate/headgate/internal/image/debian"
	"github.com/headgate/headgate/internal/image/rootfs"
)

// Input is what an image is made of.
type Input struct {
	Lock   debian.Lock
	Mirror debian.Mirror
	// Headgate is the program, and Start is cmd/headgate-start.
	Headgate, Start []byte
	// Licences are those of Headgate and of what is in it, by their paths in the image's
	// folder for them.
	Licences map[string][]byte
	// Version and Revision are those of the program, Source is where its code is.
	Version, Revision, Source string
}

// Source is where the code of Headgate is.
const Source = "https://github.com/headgate/headgate"

// A Root is the content of an image.
type Root struct {
	Base, Program *rootfs.Tree
	Packages      []deb.Control
}

// Unpack makes the content of an image: a tree of Debian's packages, and one of Headgate's
// own files.
func Unpack(ctx context.Context, in Input) (Root, error) {
	files, err := in.Mirror.FetchAll(ctx, in.Lock)
	if err != nil {
		return Root{}, err
	}
	r := Root{Base: rootfs.New()}
	for _, file := range files {
		control, err := r.Base.AddPackage(file)
		if err != nil {
			return Root{}, err
		}
		r.Packages = append(r.Packages, control)
	}
	if err := r.Base.SetUp(in.Lock.Architecture); err != nil {
		return Root{}, err
	}
	r.Program, err = programs(in)
	return r, err
}

// Check checks that the programs and libraries are for a machine and complete, that links
// lead to something, that licences are there, and that all of it is not too large.
func (r Root) Check(machine elf.Machine) error {
	var names []string
	for _, p := range r.Packages {
		names = append(names, p.Package)
	}
	return errors.Join(
		rootfs.CheckPrograms(machine, r.Base, r.Program),
		rootfs.CheckLicences(append(names, "headgate"), r.Base, r.Program),
		rootfs.CheckLinks(r.Base, r.Program),
		rootfs.CheckSize(r.Base, r.Program),
	)
}

// programs is the tree of Headgate, with the names of ingress-nginx's programs. Only the one
// with the controller's name may need the capability for ports.
func programs(in Input) (*rootfs.Tree, error) {
	files := map[string]rootfs.File{
		rootfs.Program: {Kind: tar.TypeReg, Mode: 0o755, Content: in.Headgate},
		rootfs.Start:   {Kind: tar.TypeReg, Mode: 0o755, Content: in.Start, Ports: true},
	}
	for name, target := range map[string]string{
		"headgate": rootfs.Program, "dbg": rootfs.Program, "wait-shutdown": rootfs.Program, "kube-webhook-certgen": rootfs.Program,
		"nginx-ingress-controller": rootfs.Start,
	} {
		files[name] = rootfs.File{Kind: tar.TypeSymlink, Mode: 0o777, Target: "/" + target}
	}
	for name, text := range in.Licences {
		files[path.Join("usr/share/doc/headgate", name)] = rootfs.File{Kind: tar.TypeReg, Mode: 0o644, Content: text}
	}
	t := rootfs.New()
	for name, f := range files {
		if err := t.Add(name, f); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Tar writes the content, of all layers together.
func (r Root) Tar(to io.Writer, at time.Time) error {
	return rootfs.Merge(r.Base, r.Program).Tar(to, at)
}

// Layers packs the content.
func (r Root) Layers(at time.Time) (layers []v1.Layer, err error) {
	for _, tree := range []*rootfs.Tree{r.Base, r.Program} {
		layer, err := pack(tree, at)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

func pack(t *rootfs.Tree, at time.Time) (v1.Layer, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if err := t.Tar(zip, at); err != nil {
		return nil, fmt.Errorf("pack a layer: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, fmt.Errorf("pack a layer: %w", err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(packed.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}

// A Kind is an image with a program of its own. All have the same layers.
type Kind struct {
	Name, Title string
	User        string
	Entrypoint  []string
	Command     []string
}

// Kinds are the images: the controller, and the program that makes the certificate of the
// admission webhook, which ingress-nginx has in an image of its own.
func Kinds() []Kind {
	controller := Kind{
		Name: "headgate", Title: "Headgate", User: fmt.Sprint(rootfs.User),
		Entrypoint: []string{"/usr/bin/dumb-init", "--"}, Command: []string{"/nginx-ingress-controller"},
	}
	// ingress-nginx's chart appends this to the name with controller.image.chroot.
	chroot := controller
	chroot.Name += "-chroot"
	return []Kind{
		controller, chroot,
		{Name: "headgate-certgen", Title: "Headgate's kube-webhook-certgen", User: "65532", Entrypoint: []string{"/kube-webhook-certgen"}},
	}
}

// Make makes the image of a kind out of layers.
func Make(k Kind, in Input, layers []v1.Layer) (v1.Image, error) {
	image := mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1)
	image, err := mutate.AppendLayers(image, layers...)
	if err != nil {
		return nil, fmt.Errorf("add layers: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Created = in.Lock.Architecture, "linux", v1.Time{Time: in.Lock.At}
	file.Config = config(k, in)
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return nil, fmt.Errorf("configure the image: %w", err)
	}
	return image, nil
}

// config is what a container of an image is started with, and what is said about the image.
func config(k Kind, in Input) v1.Config {
	return v1.Config{
		User: k.User, WorkingDir: "/etc/nginx", Entrypoint: k.Entrypoint, Cmd: k.Command, StopSignal: "SIGTERM",
		Env: []string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			// The directory that NGINX runs in is below it, unless a volume that all can write to is there.
			"XDG_RUNTIME_DIR=/run",
			"HEADGATE_NGINX_CONF_LINK=" + rootfs.ConfLink,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":    k.Title,
			"org.opencontainers.image.version":  in.Version,
			"org.opencontainers.image.revision": in.Revision,
			"org.opencontainers.image.source":   in.Source,
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.created":  in.Lock.At.UTC().Format(time.RFC3339),
		},
	}
}
