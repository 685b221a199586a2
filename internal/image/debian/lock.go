// Package debian gets packages of Debian, by exact versions and hashes, for any
// architecture, and unpacks them without running their scripts.
package debian

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// A Package is one file in Debian's archive.
type Package struct {
	Name, Version string
	// Size is that of the file, in bytes.
	Size   int64
	SHA256 string // hexadecimal
	// Path is where the file is below the root of a mirror: "debian/pool/…".
	Path string
}

// A Lock names the packages of an image exactly.
type Lock struct {
	Architecture string // as Debian calls it: "amd64", "arm64"
	// At is when the packages were the newest ones. Debian's snapshots have them by that
	// time, when mirrors have newer ones only.
	At       time.Time
	Packages []Package
}

const snapshotTime = "20060102T150405Z"

// Write writes the lock as text: a line for each package.
func (l Lock) Write(to io.Writer) error {
	text := fmt.Sprintf("# Written by make image-lock.\narchitecture %s\nat %s\n", l.Architecture, l.At.UTC().Format(snapshotTime))
	for _, p := range l.Packages {
		text += fmt.Sprintf("%s %s %d %s %s\n", p.Name, p.Version, p.Size, p.SHA256, p.Path)
	}
	_, err := io.WriteString(to, text)
	return err
}

// ReadLock reads what Write has written.
func ReadLock(from io.Reader) (Lock, error) {
	var l Lock
	lines := bufio.NewScanner(from)
	for number := 1; lines.Scan(); number++ {
		fields := strings.Fields(lines.Text())
		var err error
		switch {
		case len(fields) == 0 || fields[0] == "#":
		case len(fields) == 2 && fields[0] == "architecture":
			l.Architecture = fields[1]
		case len(fields) == 2 && fields[0] == "at":
			l.At, err = time.Parse(snapshotTime, fields[1])
		case len(fields) == 5:
			p := Package{Name: fields[0], Version: fields[1], SHA256: fields[3], Path: fields[4]}
			p.Size, err = strconv.ParseInt(fields[2], 10, 64)
			l.Packages = append(l.Packages, p)
		default:
			err = fmt.Errorf("%d words: must be NAME VERSION SIZE SHA256 PATH", len(fields))
		}
		if err != nil {
			return Lock{}, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return Lock{}, err
	}
	if l.Architecture == "" || l.At.IsZero() {
		return Lock{}, fmt.Errorf("no line with the architecture, or none with the time")
	}
	return l, nil
}
