package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// A Mirror fetches from Debian's archive.
type Mirror struct {
	// URL is that of a mirror with the folders debian and debian-security.
	URL string
	// Snapshots is the URL of Debian's snapshots, where packages are found that mirrors no
	// longer have.
	Snapshots string
	// Cache is a folder for packages that were fetched.
	Cache string
}

// timeout is for one file.
const timeout = 5 * time.Minute

// FetchAll returns the paths of files with all packages of a lock, in its order.
func (m Mirror) FetchAll(ctx context.Context, l Lock) ([]string, error) {
	files := make([]string, len(l.Packages))
	// Small files, of which each waits for the mirror.
	const atOnce = 8
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, p := range l.Packages {
		group.Go(func() (err error) {
			files[i], err = m.Fetch(ctx, p, l.At)
			return err
		})
	}
	return files, group.Wait()
}

// Fetch returns the path of a file with the package, whose hash is right.
func (m Mirror) Fetch(ctx context.Context, p Package, at time.Time) (string, error) {
	file := filepath.Join(m.Cache, p.SHA256+".deb")
	if content, err := os.ReadFile(file); err == nil && p.check(content) == nil {
		return file, nil
	}
	content, err := m.get(ctx, m.URL+"/"+p.Path, p.Size)
	if err == nil {
		err = p.check(content)
	}
	if err != nil && m.Snapshots != "" {
		var older error
		if content, older = m.get(ctx, m.snapshot(p, at), p.Size); older == nil {
			older = p.check(content)
		}
		if older != nil {
			err = errors.Join(err, older)
		} else {
			err = nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("fetch package %s %s (make image-lock pins the newest versions): %w", p.Name, p.Version, err)
	}
	return file, keep(file, content)
}

// snapshot is the URL of a package among Debian's snapshots: ARCHIVE/TIME/pool/….
func (m Mirror) snapshot(p Package, at time.Time) string {
	archive, rest, _ := cutPath(p.Path)
	return m.Snapshots + "/archive/" + archive + "/" + at.UTC().Format(snapshotTime) + "/" + rest
}

func (p Package) check(content []byte) error {
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != p.SHA256 {
		return fmt.Errorf("%s has the SHA-256 hash %s, want %s", p.Path, got, p.SHA256)
	}
	return nil
}

// get fetches at most limit bytes.
func (m Mirror) get(ctx context.Context, url string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("GET %s: %w", url, err)
	}
	return content, nil
}

// keep writes a file whole or not at all.
func keep(file string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(file), "part")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	_, err = part.Write(content)
	if err = errors.Join(err, part.Close()); err != nil {
		return fmt.Errorf("keep a package: %w", err)
	}
	return os.Rename(part.Name(), file)
}
