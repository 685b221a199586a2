package dataplane

import (
	"fmt"
	"hash/crc32"
	"iter"
	"slices"
	"strings"

	"github.com/headgate/headgate/internal/unit"
)

// MaxFrame is the maximum size of a frame in bytes. A worker that reads a frame
// does nothing else meanwhile.
const MaxFrame = 256 << 10

const (
	maxName    = 512
	maxVersion = 64
	maxKind    = 16
	// lineRoom is more than the first line of a frame can take, headRoom more
	// than the line before an entry can take.
	lineRoom = 96
	headRoom = 256
	// partSize is the number of payload bytes in a part of a unit that does not
	// fit into one frame.
	partSize = MaxFrame - lineRoom - headRoom - maxName
)

// check reports what is wrong with a change.
func check(c unit.Change) error {
	switch {
	case c.Kind == "" || len(c.Kind) > maxKind || strings.Trim(string(c.Kind), "abcdefghijklmnopqrstuvwxyz") != "":
		return fmt.Errorf("unit with the kind %q", c.Kind)
	case c.Name == "" || len(c.Name) > maxName:
		return fmt.Errorf("%s with a name of %d bytes", c.Kind, len(c.Name))
	case c.Delete:
		return nil
	case c.Version == "" || len(c.Version) > maxVersion || strings.Trim(c.Version, "0123456789abcdef") != "":
		return fmt.Errorf("%s %s with the version %q", c.Kind, c.Name, c.Version)
	case len(c.Owner) > unit.MaxOwner || strings.Trim(c.Owner, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return fmt.Errorf("%s %s of the owner %q", c.Kind, c.Name, c.Owner)
	case len(c.Same) > maxVersion || strings.Trim(c.Same, "0123456789abcdef") != "":
		return fmt.Errorf("%s %s with the same guards as the version %q", c.Kind, c.Name, c.Same)
	case c.Needs < 0:
		return fmt.Errorf("%s %s needs generation %d", c.Kind, c.Name, c.Needs)
	}
	return nil
}

// head is the line before the bytes of a part.
func head(c unit.Change, part, parts, size int) string {
	if c.Delete {
		return fmt.Sprintf("del %s %d\n", c.Kind, len(c.Name))
	}
	version, owner := c.Version, ""
	if c.Same != "" {
		version += "=" + c.Same
	}
	if c.Owner != "" {
		owner = " " + c.Owner
	}
	return fmt.Sprintf("put %s %d %s %d/%d %d %d%s\n", c.Kind, c.Needs, version, part, parts, len(c.Name), size, owner)
}

// A frame is the body of one request. entries is the number of entries, counted
// from the first packed one, that are complete when it is applied.
type frame struct {
	body    []byte
	entries int
}

// frames packs entries, which must be valid, in their order. Deletions have frames
// of their own: a worker sees the units of a frame when all of it is applied, and
// until then uses those that the following frames delete.
func frames(dictionary, generation int, entries []unit.Change) iter.Seq[frame] {
	return func(yield func(frame) bool) {
		var content []byte
		count, deletes := 0, false
		add := func(head, name string, payload []byte) {
			content = append(append(append(content, head...), name...), payload...)
			count++
		}
		// flush yields what was added, if anything. Each frame has memory of its own:
		// the HTTP client may read it a little longer than the request lasts.
		flush := func(complete int) bool {
			if count == 0 {
				return true
			}
			body := fmt.Appendf(make([]byte, 0, lineRoom+len(content)), "headgate 1 %d %d %d %d\n",
				dictionary, generation, count, crc32.ChecksumIEEE(content))
			body = append(body, content...)
			content, count = content[:0], 0
			return yield(frame{body: body, entries: complete})
		}
		for i, c := range entries {
			payload := c.Payload
			if c.Delete {
				payload = nil
			}
			line := head(c, 1, 1, len(payload))
			size := len(line) + len(c.Name) + len(payload)
			if (len(content)+size > MaxFrame-lineRoom || c.Delete != deletes) && !flush(i) {
				return
			}
			deletes = c.Delete
			if size <= MaxFrame-lineRoom {
				add(line, c.Name, payload)
				continue
			}
			parts := (len(payload) + partSize - 1) / partSize
			part := 0
			for chunk := range slices.Chunk(payload, partSize) {
				part++
				add(head(c, part, parts, len(chunk)), c.Name, chunk)
				if !flush(i + part/parts) {
					return
				}
			}
		}
		flush(len(entries))
	}
}
