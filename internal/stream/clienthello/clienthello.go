// Package clienthello reads the server name in the first message of a TLS client, without
// answering it, and without the rest of TLS.
//
// It is strict: what it does not understand to the last byte has no name. It knows bytes
// alone: where they come from, and what a name leads to, is for its callers.
package clienthello

import (
	"errors"
	"fmt"
	"slices"
)

// MaxBytes is how many bytes a client may send until its message is complete, with the
// headers of records. Messages of clients have 200 bytes to 2 KiB; a record has at
// most 16 KiB.
const MaxBytes = 16 << 10

var (
	// ErrMore wants more bytes.
	ErrMore = errors.New("the ClientHello is not complete")
	// ErrNot is about bytes that are not a ClientHello with a name.
	ErrNot = errors.New("not a ClientHello with a server name")
	// ErrNoName is ErrNot about a ClientHello that has none.
	ErrNoName = fmt.Errorf("%w: it has none", ErrNot)
)

const (
	recordHeader    = 5
	handshakeRecord = 22
	maxRecord       = 16 << 10

	messageHeader = 4
	clientHello   = 1
	randomBytes   = 32
	maxSession    = 32
	nameExtension = 0
	hostName      = 0
	maxName       = 255
	recordMajor   = 3
	smallestHello = 2 + randomBytes + 1 + 2 + 1
)

// A Reader takes the bytes of a client as they come. The zero value is ready. Bytes are
// looked at once, however small their pieces are.
type Reader struct {
	// next is where the next record begins, in all bytes so far.
	next int
	// message is what records had of the message. It is a part of the data of the last
	// call until it is owned.
	message []byte
	owned   bool
	// need is the length of the whole message, 0 until that is known.
	need int
}

// Name returns the server name, in lower case, once data, which is everything that the
// client has sent so far, has all of it. Before that, it returns ErrMore. What it was
// given before must be the beginning of data, at the same place or another.
func (r *Reader) Name(data []byte) (string, error) {
	for {
		done, err := r.record(data)
		if err != nil {
			return "", err
		}
		if done {
			return nameIn(r.message[messageHeader:r.need])
		}
	}
}

// record takes one record. It reports whether the message is complete.
func (r *Reader) record(data []byte) (done bool, err error) {
	rest := data[r.next:]
	// What is wrong already needs no more bytes.
	if len(rest) > 0 && rest[0] != handshakeRecord || len(rest) > 1 && rest[1] != recordMajor {
		return false, ErrNot
	}
	if len(rest) < recordHeader {
		return false, r.more(data)
	}
	length := int(rest[3])<<8 | int(rest[4])
	if length == 0 || length > maxRecord {
		return false, ErrNot
	}
	if first := r.next == 0 && len(rest) > recordHeader; first && rest[recordHeader] != clientHello {
		return false, ErrNot
	}
	if len(rest) < recordHeader+length {
		return false, r.more(data)
	}
	fragment := rest[recordHeader : recordHeader+length]
	r.next += recordHeader + length
	if r.message == nil {
		// Most messages have one record, and need no copy.
		r.message = fragment[:length:length]
	} else {
		r.message, r.owned = append(r.message, fragment...), true
	}
	return r.complete()
}

func (r *Reader) more(data []byte) error {
	if len(data) >= MaxBytes {
		return ErrNot
	}
	if !r.owned && r.message != nil {
		// The caller may move the data.
		r.message, r.owned = slices.Clone(r.message), true
	}
	return ErrMore
}

// complete reports whether the message is complete. Nothing may follow it in its record: a
// client waits for the answer.
func (r *Reader) complete() (bool, error) {
	if len(r.message) < messageHeader {
		return false, nil
	}
	if r.message[0] != clientHello {
		return false, ErrNot
	}
	r.need = messageHeader + (int(r.message[1])<<16 | int(r.message[2])<<8 | int(r.message[3]))
	if r.need > MaxBytes || len(r.message) > r.need {
		return false, ErrNot
	}
	return len(r.message) == r.need, nil
}

// nameIn is the name in the body of a ClientHello.
func nameIn(body []byte) (string, error) {
	if len(body) < smallestHello || body[0] != recordMajor {
		return "", ErrNot
	}
	b := bytes{rest: body[2+randomBytes:]}
	session := b.vector(1)
	suites, compressions := b.vector(2), b.vector(1)
	if b.bad || len(session) > maxSession || len(suites) == 0 || len(suites)%2 != 0 || len(compressions) == 0 {
		return "", ErrNot
	}
	extensions := b.vector(2)
	if b.bad || len(b.rest) > 0 {
		return "", ErrNot
	}
	return nameAmong(extensions)
}

// nameAmong is the name among the extensions, which may have one, and once.
func nameAmong(extensions []byte) (name string, err error) {
	found := false
	for b := (bytes{rest: extensions}); len(b.rest) > 0; {
		kind, content := b.number(2), b.vector(2)
		if b.bad || found && kind == nameExtension {
			return "", ErrNot
		}
		if kind != nameExtension {
			continue
		}
		if name, err = nameOf(content); err != nil {
			return "", err
		}
		found = true
	}
	if !found {
		return "", ErrNoName
	}
	return name, nil
}

// nameOf is the name in the extension, which has a list of one.
func nameOf(content []byte) (string, error) {
	b := bytes{rest: content}
	list := bytes{rest: b.vector(2)}
	if b.bad || len(b.rest) > 0 || list.number(1) != hostName {
		return "", ErrNot
	}
	name := list.vector(2)
	if list.bad || len(list.rest) > 0 || len(name) == 0 || len(name) > maxName {
		return "", ErrNot
	}
	return lower(name)
}

// lower is the name in lower case, if it is one of letters, digits and -._ as hosts of
// Ingresses are. RFC 6066 allows no dot at its end; clients that send one mean the same.
func lower(name []byte) (string, error) {
	if last := len(name) - 1; name[last] == '.' {
		name = name[:last]
	}
	if len(name) == 0 {
		return "", ErrNot
	}
	text := make([]byte, len(name))
	for i, c := range name {
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.', c == '_':
		default:
			return "", ErrNot
		}
		text[i] = c
	}
	return string(text), nil
}

// bytes are read from the front. After an error they are bad, and what is read is empty.
type bytes struct {
	rest []byte
	bad  bool
}

// number reads a number of so many bytes.
func (b *bytes) number(size int) (n int) {
	if len(b.rest) < size {
		b.bad, b.rest = true, nil
		return 0
	}
	for _, c := range b.rest[:size] {
		n = n<<8 | int(c)
	}
	b.rest = b.rest[size:]
	return n
}

// vector reads bytes that follow their number, which has so many bytes.
func (b *bytes) vector(size int) []byte {
	n := b.number(size)
	if n > len(b.rest) {
		b.bad, b.rest = true, nil
		return nil
	}
	v := b.rest[:n]
	b.rest = b.rest[n:]
	return v
}
