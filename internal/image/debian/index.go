package debian

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/ulikunitz/xz"
	"pault.ag/go/debian/control"
	"pault.ag/go/debian/version"
)

// suites are where the newest packages of Debian 13 are: ARCHIVE/SUITE.
func suites() []string {
	return []string{"debian/trixie", "debian/trixie-updates", "debian-security/trixie-security"}
}

// maxIndex bounds the files that list packages, in bytes.
const maxIndex = 64 << 20

// Newest locks the newest versions of packages. What lists them must be signed by Debian.
func (m Mirror) Newest(ctx context.Context, architecture string, names []string, now time.Time) (Lock, error) {
	found := map[string]Package{}
	for _, suite := range suites() {
		list, err := m.packages(ctx, suite, architecture)
		if err != nil {
			return Lock{}, fmt.Errorf("list the packages of %s: %w", suite, err)
		}
		for _, p := range list {
			if !slices.Contains(names, p.Name) {
				continue
			}
			if isNewer, err := p.isNewerThan(found[p.Name]); err != nil {
				return Lock{}, err
			} else if isNewer {
				found[p.Name] = p
			}
		}
	}
	l := Lock{Architecture: architecture, At: now}
	var missing []error
	for _, name := range slices.Sorted(slices.Values(names)) {
		p, ok := found[name]
		if !ok {
			missing = append(missing, fmt.Errorf("no package %s for %s", name, architecture))
			continue
		}
		l.Packages = append(l.Packages, p)
	}
	return l, errors.Join(missing...)
}

func (p Package) isNewerThan(other Package) (bool, error) {
	if other.Name == "" {
		return true, nil
	}
	a, err := version.Parse(p.Version)
	if err != nil {
		return false, fmt.Errorf("version of %s: %w", p.Name, err)
	}
	b, err := version.Parse(other.Version)
	if err != nil {
		return false, fmt.Errorf("version of %s: %w", p.Name, err)
	}
	return version.Compare(a, b) > 0, nil
}

// packages are those of a suite.
func (m Mirror) packages(ctx context.Context, suite, architecture string) ([]Package, error) {
	archive, name, _ := cutPath(suite)
	at := m.URL + "/" + archive + "/dists/" + name + "/"
	release, err := m.get(ctx, at+"InRelease", maxIndex)
	if err != nil {
		return nil, err
	}
	if release, err = signed(ctx, release); err != nil {
		return nil, err
	}
	file := "main/binary-" + architecture + "/Packages.xz"
	packed, err := m.get(ctx, at+file, maxIndex)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(packed)
	if !slices.ContainsFunc(strings.Split(string(release), "\n"), func(line string) bool {
		f := strings.Fields(line)
		return len(f) == 3 && f[0] == hex.EncodeToString(sum[:]) && f[2] == file
	}) {
		return nil, fmt.Errorf("%s is not what InRelease names", file)
	}
	return parseIndex(packed, archive)
}

func parseIndex(packed []byte, archive string) ([]Package, error) {
	text, err := xz.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	index, err := control.ParseBinaryIndex(bufio.NewReader(text))
	if err != nil {
		return nil, err
	}
	var list []Package
	for _, p := range index {
		list = append(list, Package{
			Name: p.Package, Version: p.Version.String(), Size: int64(p.Size), SHA256: p.SHA256, Path: archive + "/" + p.Filename,
		})
	}
	return list, nil
}

// keyring is Debian's, of the package debian-archive-keyring.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// signed returns the text of a file that Debian has signed.
func signed(ctx context.Context, file []byte) ([]byte, error) {
	text, err := os.CreateTemp("", "release")
	if err != nil {
		return nil, err
	}
	defer os.Remove(text.Name())
	text.Close()
	gpgv := exec.CommandContext(ctx, "gpgv", "--keyring", keyring, "--output", text.Name(), "--", "-")
	gpgv.Stdin = bytes.NewReader(file)
	if out, err := gpgv.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("verify InRelease: %w: %s", err, out)
	}
	return os.ReadFile(text.Name())
}

// cutPath cuts a path after its first element.
func cutPath(path string) (first, rest string, ok bool) { return strings.Cut(path, "/") }
