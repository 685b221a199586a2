package geodb

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/oschwald/maxminddb-golang/v2"
)

// maxSize bounds a database. The largest one of MaxMind has some 200 MB.
const maxSize = 1 << 30

// Verify reads a database to its end: all networks and all that is said of them. Nothing may write to the file
// meanwhile.
func Verify(path string) (err error) {
	reader, err := maxminddb.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	// What NGINX's library does not take, and with it all of nginx.conf.
	if m := reader.Metadata; m.BinaryFormatMajorVersion != 2 || m.IPVersion != 4 && m.IPVersion != 6 {
		return fmt.Errorf("version %d for IPv%d", m.BinaryFormatMajorVersion, m.IPVersion)
	}
	read := map[uintptr]bool{}
	for result := range reader.Networks() {
		if err := result.Err(); err != nil {
			return err
		}
		if offset := result.Offset(); read[offset] {
			continue
		} else {
			read[offset] = true
		}
		var value any
		if err := result.Decode(&value); err != nil {
			return err
		}
	}
	if len(read) == 0 {
		return errors.New("it has no networks")
	}
	return nil
}

// copyFile makes a copy in a folder, and says what its digest is.
func copyFile(path, folder string) (made, digest string, err error) {
	from, err := os.Open(path)
	if err != nil {
		return "", "", err
	}
	defer from.Close()
	to, err := os.CreateTemp(folder, ".new-*")
	if err != nil {
		return "", "", err
	}
	hash := sha256.New()
	err = copyBounded(io.MultiWriter(to, hash), from)
	if err = errors.Join(err, to.Close()); err != nil {
		return "", "", errors.Join(err, os.Remove(to.Name()))
	}
	return to.Name(), hex.EncodeToString(hash.Sum(nil)[:16]), nil
}

// copyBounded copies at most maxSize bytes.
func copyBounded(to io.Writer, from io.Reader) error {
	n, err := io.Copy(to, io.LimitReader(from, maxSize+1))
	if err == nil && n > maxSize {
		return fmt.Errorf("more than %d bytes", maxSize)
	}
	return err
}
