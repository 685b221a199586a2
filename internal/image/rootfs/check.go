package rootfs

import (
	"archive/tar"
	"errors"
	"fmt"
	"strings"
)

// maxSize is how large the files of an image may be together, in bytes.
const maxSize = 200e6

// CheckSize checks that the files of an image are not larger than they should be.
func CheckSize(trees ...*Tree) error {
	var size int64
	for _, t := range trees {
		size += t.Size()
	}
	if size > maxSize {
		return fmt.Errorf("the files have %d bytes: at most %d are allowed", size, int64(maxSize))
	}
	return nil
}

// CheckLicences checks that the licence of each package is there.
func CheckLicences(packages []string, trees ...*Tree) error {
	all := Merge(trees...)
	var errs []error
	for _, name := range packages {
		_, err := all.Open("/usr/share/doc/" + name + "/copyright")
		if _, err2 := all.Open("/usr/share/doc/" + name + "/LICENSE"); err != nil && err2 != nil {
			errs = append(errs, fmt.Errorf("no licence of %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// CheckLinks checks that symbolic links lead to something: in one of the trees, or in
// directories that are filled when a container runs.
func CheckLinks(trees ...*Tree) error {
	all := Merge(trees...)
	var errs []error
	for _, name := range all.Paths() {
		f := all.files[name]
		if f.Kind != tar.TypeSymlink || f.Target == "/" || strings.HasPrefix(f.Target, "/run/") || strings.HasPrefix(f.Target, "/dev/") || strings.HasPrefix(f.Target, "/proc/") {
			continue
		}
		if _, err := all.Open("/" + name); err != nil {
			errs = append(errs, fmt.Errorf("/%s is a link to %s: %w", name, f.Target, err))
		}
	}
	return errors.Join(errs...)
}
