// Command image makes the container images of Headgate as an OCI archive, without a daemon.
//
//	go run ./scripts/image -headgate amd64=bin/headgate -o headgate.tar
//	go run ./scripts/image -lock      pins the newest packages of deploy/image/packages
package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"debug/buildinfo"
	"debug/elf"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/headgate/headgate/internal/image"
	"github.com/headgate/headgate/internal/image/debian"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	folder, output, root, version, revision, source, key, mirror, cache string
	lock                                                                bool
	programs                                                            map[string]string // by architecture
}

func parse(args []string) (options, error) {
	o := options{programs: map[string]string{}}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	f := flag.NewFlagSet("image", flag.ContinueOnError)
	f.BoolVar(&o.lock, "lock", false, "pin the newest packages, and make no image")
	f.StringVar(&o.folder, "folder", "deploy/image", "folder with the list of packages and the pinned ones")
	f.StringVar(&o.output, "o", "headgate.tar", "archive to write; the lists of its parts are beside it")
	f.StringVar(&o.root, "root", "", "also write the files of the image, of one architecture, as this tar archive; deploy/Dockerfile unpacks it")
	f.StringVar(&o.version, "version", "unknown", "version, and tag of the images")
	f.StringVar(&o.revision, "revision", "", "commit")
	f.StringVar(&o.source, "source", image.Source, "URL of the source code")
	f.StringVar(&o.key, "key", "", "PEM file with a private key that signs the images")
	f.StringVar(&o.mirror, "mirror", "http://deb.debian.org", "mirror of Debian's archive")
	f.StringVar(&o.cache, "cache", filepath.Join(cache, "headgate-image"), "folder for fetched packages")
	f.Func("headgate", "ARCHITECTURE=FILE: the program for an architecture; may be repeated", func(text string) error {
		architecture, file, ok := strings.Cut(text, "=")
		if !ok {
			return fmt.Errorf("must be ARCHITECTURE=FILE")
		}
		o.programs[architecture] = file
		return nil
	})
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if !o.lock && len(o.programs) == 0 {
		return o, fmt.Errorf("-headgate is missing: it names the program")
	}
	if o.root != "" && len(o.programs) != 1 {
		return o, fmt.Errorf("-root has the files of one architecture: -headgate must name one program")
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	mirror := debian.Mirror{URL: o.mirror, Snapshots: "https://snapshot.debian.org", Cache: o.cache}
	if o.lock {
		return o.pin(ctx, mirror)
	}
	named, err := o.images(ctx, mirror)
	if err != nil {
		return err
	}
	if named, err = o.sign(named); err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := image.WriteArchive(&archive, named...); err != nil {
		return err
	}
	if err := os.WriteFile(o.output, archive.Bytes(), 0o644); err != nil {
		return err
	}
	return printDigests(os.Stdout, named)
}

// printDigests lists the images as a registry names them.
func printDigests(out io.Writer, named []image.Named) error {
	for _, n := range named {
		digest, err := n.Digest()
		if err != nil {
			return fmt.Errorf("digest of %s: %w", n.Name, err)
		}
		fmt.Fprintln(out, n.Name, digest)
	}
	return nil
}

// pin writes the newest versions of all packages.
func (o options) pin(ctx context.Context, mirror debian.Mirror) error {
	text, err := os.ReadFile(filepath.Join(o.folder, "packages"))
	if err != nil {
		return err
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		if name := strings.TrimSpace(line); name != "" && !strings.HasPrefix(name, "#") {
			names = append(names, name)
		}
	}
	now := time.Now().UTC().Truncate(time.Second)
	for architecture := range machines() {
		lock, err := mirror.Newest(ctx, architecture, names, now)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := lock.Write(&out); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.folder, architecture+".lock"), out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// machines are the architectures, with what their programs say.
func machines() map[string]elf.Machine {
	return map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
}

// images makes the images of all kinds: one for each architecture, in an index if there
// are several.
func (o options) images(ctx context.Context, mirror debian.Mirror) ([]image.Named, error) {
	indexes := map[string][]mutate.IndexAddendum{}
	for _, architecture := range slices.Sorted(maps.Keys(o.programs)) {
		in, layers, err := o.layers(ctx, mirror, architecture)
		if err != nil {
			return nil, fmt.Errorf("make the image for %s: %w", architecture, err)
		}
		for _, kind := range image.Kinds() {
			made, err := image.Make(kind, in, layers)
			if err != nil {
				return nil, fmt.Errorf("make %s for %s: %w", kind.Name, architecture, err)
			}
			indexes[kind.Name] = append(indexes[kind.Name], mutate.IndexAddendum{
				Add:        made,
				Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
			})
		}
	}
	var named []image.Named
	for _, kind := range image.Kinds() {
		list := indexes[kind.Name]
		n := image.Named{Name: "docker.io/headgate/" + kind.Name + ":" + o.version}
		if len(list) == 1 {
			n.Image = list[0].Add.(v1.Image)
		} else {
			n.Index = mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), list...)
		}
		named = append(named, n)
	}
	return named, nil
}

// layers makes the layers of an architecture, checks them, and writes what they are made of.
func (o options) layers(ctx context.Context, mirror debian.Mirror, architecture string) (image.Input, []v1.Layer, error) {
	in := image.Input{Mirror: mirror, Version: o.version, Revision: o.revision, Source: o.source}
	machine, ok := machines()[architecture]
	if !ok {
		return in, nil, fmt.Errorf("unknown architecture: must be amd64 or arm64")
	}
	file, err := os.Open(filepath.Join(o.folder, architecture+".lock"))
	if err != nil {
		return in, nil, err
	}
	defer file.Close()
	if in.Lock, err = debian.ReadLock(file); err != nil {
		return in, nil, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	if in.Headgate, err = os.ReadFile(o.programs[architecture]); err != nil {
		return in, nil, err
	}
	if in.Start, err = buildStart(ctx, architecture); err != nil {
		return in, nil, err
	}
	build, err := buildinfo.Read(bytes.NewReader(in.Headgate))
	if err != nil {
		return in, nil, fmt.Errorf("read the build info of %s: %w", o.programs[architecture], err)
	}
	if in.Licences, err = licences(ctx, build); err != nil {
		return in, nil, err
	}
	root, err := image.Unpack(ctx, in)
	if err != nil {
		return in, nil, err
	}
	if err := root.Check(machine); err != nil {
		return in, nil, err
	}
	list, err := image.SBOM(in, root.Packages, build)
	if err != nil {
		return in, nil, err
	}
	name := strings.TrimSuffix(o.output, ".tar") + "-" + architecture + ".spdx.json"
	if err := os.WriteFile(name, list, 0o644); err != nil {
		return in, nil, err
	}
	if err := o.writeRoot(root, in.Lock.At); err != nil {
		return in, nil, err
	}
	slog.Info("image", "architecture", architecture, "packages", len(root.Packages),
		"base", megabytes(root.Base.Size()), "headgate", megabytes(root.Program.Size()))
	layers, err := root.Layers(in.Lock.At)
	return in, layers, err
}

// writeRoot writes the files of an image, if that is asked for.
func (o options) writeRoot(root image.Root, at time.Time) error {
	if o.root == "" {
		return nil
	}
	var files bytes.Buffer
	if err := root.Tar(&files, at); err != nil {
		return err
	}
	return os.WriteFile(o.root, files.Bytes(), 0o644)
}

// buildStart builds headgate-start, which is part of every image.
func buildStart(ctx context.Context, architecture string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "headgate-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "start")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, "github.com/headgate/headgate/cmd/headgate-start")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+architecture)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build headgate-start: %w: %s", err, out)
	}
	return os.ReadFile(file)
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// sign adds the signatures of all images, if there is a key.
func (o options) sign(named []image.Named) ([]image.Named, error) {
	if o.key == "" {
		return named, nil
	}
	key, err := readKey(o.key)
	if err != nil {
		return nil, err
	}
	for _, n := range named {
		digest, err := n.Digest()
		if err != nil {
			return nil, err
		}
		repository, _, _ := strings.Cut(n.Name, ":")
		signature, tag, err := image.Sign(key, repository, digest)
		if err != nil {
			return nil, err
		}
		named = append(named, image.Named{Name: repository + ":" + tag, Image: signature})
	}
	return named, nil
}

func readKey(name string) (crypto.Signer, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is not in PEM", name)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the key in %s can't sign", name)
	}
	return signer, nil
}
