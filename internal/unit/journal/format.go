package journal

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"

	"github.com/headgate/headgate/internal/unit"
	"github.com/headgate/headgate/internal/unit/publish"
	"github.com/headgate/headgate/internal/unit/wire"
)

// A file has a header (magic, format, schema) and cuts. A cut has the length of its records with a
// checksum of that, the records, and a sum of all bytes up to there. All numbers are big-endian.
//
// A process that ends while it writes leaves a beginning of a cut. It differs from damage: a length that is
// not the written one is noticed.
const (
	magic  = "headgate"
	format = 1

	headerSize = len(magic) + 4 + 4
	headSize   = 8 + 4
	// A record has what it is, and the lengths of its kind, version, name and bytes before these.
	recordHead = 1 + 1 + 2 + 4 + 4

	isResource = 1
	isGone     = 2

	// maxBytes is how large a resource may be: gRPC carries none that is larger.
	maxBytes = 64 << 20
	maxName  = 64 << 10

	bufferSize = 256 << 10
)

// A sum is a hash of all of the file before it.
type sum [sha256.Size]byte

var (
	// errUnusable means that nothing of a file may be used.
	errUnusable = errors.New("unusable")
	// errUnfinished means that the last cut is not complete.
	errUnfinished = errors.New("unfinished")
)

func header(schema uint32) []byte {
	text := binary.BigEndian.AppendUint32([]byte(magic), format)
	return binary.BigEndian.AppendUint32(text, schema)
}

// head stands before the records of a cut.
func head(length uint64) []byte {
	text := binary.BigEndian.AppendUint64(nil, length)
	return binary.BigEndian.AppendUint32(text, crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
}

// sumAfter begins a sum of what follows another one.
func sumAfter(before sum) hash.Hash {
	h := sha256.New()
	h.Write(before[:])
	return h
}

func recordSize(r wire.Resource) int64 {
	return int64(recordHead + len(r.Key.Kind) + len(r.Version) + len(r.Key.Name) + len(r.Bytes))
}

// writeAll writes a file with one cut, and returns its sum and size.
func writeAll(file io.Writer, schema uint32, cut publish.Cut) (sum, int64, error) {
	text := header(schema)
	if _, err := file.Write(text); err != nil {
		return sum{}, 0, err
	}
	last, n, err := writeCut(file, sha256.Sum256(text), cut)
	return last, n + int64(len(text)), err
}

// writeCut writes a cut behind a sum, and returns its own sum and size.
func writeCut(file io.Writer, before sum, cut publish.Cut) (last sum, size int64, err error) {
	var length int64
	for _, r := range cut.Resources {
		if len(r.Key.Kind) > math.MaxUint8 || len(r.Version) > math.MaxUint16 || len(r.Key.Name) > maxName || len(r.Bytes) > maxBytes {
			return last, 0, fmt.Errorf("%s is too large", r.Key)
		}
		length += recordSize(r)
	}
	for _, key := range cut.Gone {
		if len(key.Kind) > math.MaxUint8 || len(key.Name) > maxName {
			return last, 0, fmt.Errorf("%s is too large", key)
		}
		length += recordSize(wire.Resource{Key: key})
	}
	size = int64(headSize) + length + int64(len(last))
	w := bufio.NewWriterSize(file, int(min(size, bufferSize)))
	sums := sumAfter(before)
	// Errors of w stay until Flush.
	w.Write(head(uint64(length)))
	records := io.MultiWriter(w, sums)
	for _, r := range cut.Resources {
		writeRecord(records, isResource, r)
	}
	for _, key := range cut.Gone {
		writeRecord(records, isGone, wire.Resource{Key: key})
	}
	sums.Sum(last[:0])
	w.Write(last[:])
	return last, size, w.Flush()
}

func writeRecord(w io.Writer, is byte, r wire.Resource) {
	text := make([]byte, 0, recordSize(r)-int64(len(r.Bytes)))
	text = append(text, is, byte(len(r.Key.Kind)))
	text = binary.BigEndian.AppendUint16(text, uint16(len(r.Version)))
	text = binary.BigEndian.AppendUint32(text, uint32(len(r.Key.Name)))
	text = binary.BigEndian.AppendUint32(text, uint32(len(r.Bytes)))
	text = append(text, r.Key.Kind...)
	text = append(text, r.Version...)
	text = append(text, r.Key.Name...)
	w.Write(text)
	w.Write(r.Bytes)
}

// read reads a file of a size. With errUnfinished it returns what the cuts before have.
func read(file io.Reader, size int64, schema uint32) (contents, error) {
	c := empty()
	r := bufio.NewReaderSize(file, bufferSize)
	text := make([]byte, headerSize)
	if size < int64(headerSize) {
		return c, fmt.Errorf("%w: the file is not complete", errUnusable)
	}
	if _, err := io.ReadFull(r, text); err != nil {
		return c, fmt.Errorf("read the header: %w", err)
	}
	if !bytes.Equal(text, header(schema)) {
		return c, fmt.Errorf("%w: the file is not of this version of Headgate", errUnusable)
	}
	c.size, c.sum = int64(headerSize), sha256.Sum256(text)
	for c.size < size {
		err := c.readCut(r, size-c.size)
		if errors.Is(err, errUnfinished) && c.size == int64(headerSize) {
			// A file has a cut when it gets its name.
			err = fmt.Errorf("%w: the file is not complete", errUnusable)
		}
		if errors.Is(err, errUnusable) {
			return empty(), fmt.Errorf("%w in the cut at byte %d", err, c.size)
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// readCut reads a cut, if the rest of the file has all of it, and applies it.
func (c *contents) readCut(r io.Reader, rest int64) error {
	if rest < headSize {
		return errUnfinished
	}
	text := make([]byte, headSize)
	if _, err := io.ReadFull(r, text); err != nil {
		return fmt.Errorf("read a cut: %w", err)
	}
	length := binary.BigEndian.Uint64(text)
	if !bytes.Equal(text, head(length)) {
		return fmt.Errorf("%w: damaged length", errUnusable)
	}
	if length > uint64(rest) || rest-int64(length) < int64(headSize+len(c.sum)) {
		return errUnfinished
	}
	records := &records{r: r, left: int64(length), sums: sumAfter(c.sum)}
	var cut publish.Cut
	for records.left > 0 {
		if err := records.next(&cut); err != nil {
			return err
		}
	}
	var last sum
	if _, err := io.ReadFull(r, last[:]); err != nil {
		return fmt.Errorf("read a sum: %w", err)
	}
	if !bytes.Equal(records.sums.Sum(nil), last[:]) {
		return fmt.Errorf("%w: damaged bytes", errUnusable)
	}
	c.apply(cut)
	c.size += int64(headSize) + int64(length) + int64(len(last))
	c.sum = last
	return nil
}

// records are those of a cut.
type records struct {
	r io.Reader
	// left is how many bytes there are of them.
	left int64
	sums hash.Hash
}

func (r *records) next(cut *publish.Cut) error {
	text, err := r.take(recordHead)
	if err != nil {
		return err
	}
	is, kind, version := text[0], int(text[1]), int(binary.BigEndian.Uint16(text[2:]))
	name, size := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	if name > maxName || size > maxBytes {
		return fmt.Errorf("%w: a record that is too large", errUnusable)
	}
	if text, err = r.take(kind + version + int(name)); err != nil {
		return err
	}
	one := wire.Resource{
		Key:     unit.Kind(text[:kind]).Key(string(text[kind+version:])),
		Version: string(text[kind : kind+version]),
	}
	if one.Bytes, err = r.take(int(size)); err != nil {
		return err
	}
	switch {
	case is == isResource:
		cut.Resources = append(cut.Resources, one)
	case is == isGone && version == 0 && size == 0:
		cut.Gone = append(cut.Gone, one.Key)
	default:
		return fmt.Errorf("%w: an unknown record", errUnusable)
	}
	return nil
}

// take reads n bytes, which are allocated only if there are as many.
func (r *records) take(n int) ([]byte, error) {
	if int64(n) > r.left {
		return nil, fmt.Errorf("%w: a record longer than its cut", errUnusable)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r.r, text); err != nil {
		return nil, fmt.Errorf("read a record: %w", err)
	}
	r.left -= int64(n)
	r.sums.Write(text)
	return text, nil
}
