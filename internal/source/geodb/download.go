package geodb

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// A Download says where databases come from.
type Download struct {
	// LicenseKey is that of MaxMind, empty for none.
	LicenseKey string
	// Mirror is a URL below which databases are, instead of MaxMind's; empty for none.
	Mirror string
	// Attempts is how often a download is tried, once if it is 0. Pause is the time after the first one that failed;
	// later ones get longer. If it is 0, there is no second one.
	Attempts int
	Pause    time.Duration
	// Server is MaxMind's, "https://download.maxmind.com" if it is empty.
	Server string
}

func (d Download) wanted() bool { return d.LicenseKey != "" || d.Mirror != "" }

const (
	maxMind = "https://download.maxmind.com"
	// downloadTimeout bounds one attempt.
	downloadTimeout = 10 * time.Minute
	// growth of the pauses.
	growth = 1.5
	// maxDigest bounds the file with a digest.
	maxDigest = 1 << 10
)

// errRefused is the answer of a server that will say the same again.
var errRefused = errors.New("refused")

// download fetches all editions into the folder.
func (f *Folder) download(ctx context.Context) {
	for _, d := range f.databases {
		err := f.attempts(ctx, d)
		if ctx.Err() != nil {
			return
		}
		f.mu.Lock()
		delete(f.failed, d.edition)
		if err != nil {
			f.failed[d.edition] = err.Error()
		}
		f.mu.Unlock()
	}
}

// attempts fetches an edition, as often as it is to be tried.
func (f *Folder) attempts(ctx context.Context, d *database) error {
	pause := f.settings.Download.Pause
	for left := max(f.settings.Download.Attempts, 1); ; left-- {
		began := time.Now()
		err := f.fetch(ctx, d)
		if err == nil {
			f.settings.Log.Info("downloaded a GeoIP database", "edition", d.edition, "file", d.path, "took", time.Since(began).Round(time.Millisecond))
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		again := left > 1 && pause > 0 && !errors.Is(err, errRefused)
		f.settings.Log.Warn("downloading a GeoIP database failed", "edition", d.edition, "error", err, "again", again)
		if !again {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = time.Duration(float64(pause) * growth)
	}
}

// fetch fetches an edition once, and puts it into the folder if it is a database.
func (f *Folder) fetch(ctx context.Context, d *database) error {
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	if err := os.MkdirAll(f.settings.Path, 0o755); err != nil {
		return err
	}
	archive, err := os.CreateTemp(f.settings.Path, ".archive-*")
	if err != nil {
		return err
	}
	defer os.Remove(archive.Name())
	defer archive.Close()
	digest, err := f.settings.Download.get(ctx, d.edition, "", archive)
	if err != nil {
		return err
	}
	if err := f.settings.Download.check(ctx, d.edition, digest); err != nil {
		return err
	}
	if _, err := archive.Seek(0, io.SeekStart); err != nil {
		return err
	}
	made, err := unpack(archive, d.edition+".mmdb", f.settings.Path)
	if err != nil {
		return fmt.Errorf("read the archive: %w", err)
	}
	defer os.Remove(made) // After success, it does not exist any more.
	if err := Verify(made); err != nil {
		return fmt.Errorf("read the database: %w", err)
	}
	return errors.Join(os.Chmod(made, 0o644), os.Rename(made, d.path))
}

// url is that of an edition's archive, or of its digest with that suffix.
func (d Download) url(edition, suffix string) string {
	if d.Mirror != "" {
		return strings.TrimRight(d.Mirror, "/") + "/" + edition + ".tar.gz" + suffix
	}
	query := url.Values{"license_key": {d.LicenseKey}, "edition_id": {edition}, "suffix": {"tar.gz" + suffix}}
	return cmp.Or(d.Server, maxMind) + "/app/geoip_download?" + query.Encode()
}

// get writes an answer, and returns its digest. Its errors have no URL, since that has the key.
func (d Download) get(ctx context.Context, edition, suffix string, to io.Writer) (digest string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url(edition, suffix), http.NoBody)
	if err != nil {
		return "", withoutURL(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", withoutURL(err)
	}
	defer response.Body.Close()
	switch code := response.StatusCode; {
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusNotFound:
		return "", fmt.Errorf("%w: the server answers %d", errRefused, code)
	case code != http.StatusOK:
		return "", fmt.Errorf("the server answers %d", code)
	}
	hash := sha256.New()
	if err := copyBounded(io.MultiWriter(to, hash), response.Body); err != nil {
		return "", withoutURL(err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// check compares a digest with the server's. A mirror may have none.
func (d Download) check(ctx context.Context, edition, digest string) error {
	var text bytes.Buffer
	_, err := d.get(ctx, edition, ".sha256", &limited{&text, maxDigest})
	if d.Mirror != "" && errors.Is(err, errRefused) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get the digest: %w", err)
	}
	if want := strings.Fields(text.String()); len(want) == 0 || !strings.EqualFold(want[0], digest) {
		return errors.New("the archive does not have the digest that the server names")
	}
	return nil
}

// limited takes so many bytes.
type limited struct {
	io.Writer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, errors.New("too long")
	}
	return l.Writer.Write(p)
}

func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// unpack writes the file of that name in an archive, in any folder there, into a new one.
func unpack(archive io.Reader, name, folder string) (made string, err error) {
	compressed, err := gzip.NewReader(archive)
	if err != nil {
		return "", err
	}
	files := tar.NewReader(io.LimitReader(compressed, 2*maxSize))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return "", fmt.Errorf("it has no file %s", name)
		}
		if err != nil {
			return "", err
		}
		if header.Typeflag == tar.TypeReg && path.Base(header.Name) == name {
			break
		}
	}
	to, err := os.CreateTemp(folder, ".new-*")
	if err != nil {
		return "", err
	}
	err = copyBounded(to, files)
	if err = errors.Join(err, to.Close()); err != nil {
		return "", errors.Join(err, os.Remove(to.Name()))
	}
	return filepath.Clean(to.Name()), nil
}
