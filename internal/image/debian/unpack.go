package debian

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"

	"pault.ag/go/debian/deb"
)

// An Entry is a file of a package. Content is valid until the next one.
type Entry struct {
	Header  *tar.Header
	Content io.Reader
}

// Unpack calls add with each file of a package, in the package's order, and returns the
// package's control file.
func Unpack(file string, add func(Entry) error) (deb.Control, error) {
	d, closer, err := deb.LoadFile(file)
	if err != nil {
		return deb.Control{}, fmt.Errorf("open package: %w", err)
	}
	defer closer()
	for {
		header, err := d.Data.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = add(Entry{header, d.Data})
		}
		if err != nil {
			return deb.Control{}, fmt.Errorf("unpack %s: %w", d.Control.Package, err)
		}
	}
	return d.Control, nil
}
